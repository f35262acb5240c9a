// The pages of jobs: the list, and one job with its picture, messages and actions. While a job runs, the script of the
// pages reads the page again every second; without a script the reader reloads it.
import { actionButton } from '../../console/action.ts';
import { renderAgo, renderTime } from '../../console/json.ts';
import { formatCount, formatDuration, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Runtime } from '../../lib/runtime.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { JobService } from '../jobs/job-service.ts';
import { type JobMessages, jobProgress } from '../jobs/job-status.ts';
import type { Job } from '../jobs/job-table.ts';
import { reasonNotToCancel, reasonNotToResume } from '../jobs/job.ts';
import type { Message } from '../jobs/messages.ts';
import type { Plan } from '../planning/plan.ts';
import { deployment, newestInstalled } from '../versions/deployment.ts';
import { formatVersion } from '../versions/manifest.ts';
import {
  type Figure,
  figuresView,
  jobTitle,
  signInHint,
  stateLabel,
  stateView,
  resumeLabel,
} from './job-parts.ts';
import { failedComponent, phasesView, tilesOf, tilesView } from './picture.ts';

/** A release of thousands of workloads has more messages than a page can show. */
const maxMessages = 200;

/** The failed tile shows these. */
const lastMessages = 5;

/** Of all runs, with the time between them. */
export function durationOf({ startedAt, endedAt }: Job, now: number): number {
  return Math.max(0, (endedAt ?? now) - startedAt);
}

export type JobViewOptions = { store: ReadableStore; runtime: Runtime; jobService: JobService };

export async function jobView(
  { store, runtime, jobService }: JobViewOptions,
  job: Job,
  page: PageContext<unknown>,
  heading = jobTitle(job),
): Promise<Html> {
  const at = runtime.now();
  const isRunning = job.state === 'in_progress';
  const plan = isRunning || job.state === 'failed' ? await store.jobs.plan(job.id) : undefined;
  const filter = filterOf(job, plan, page.query.get('component'));
  const messages = await readMessages(jobService, job, filter);
  // The script needs the session cookie to send requests. A page that was opened with a bearer token has none.
  const isFollowed = isRunning && page.formToken !== '';
  const buttons = actions(store, job, plan, page);
  const failed = failedComponent(job, plan);
  const failure = job.state === 'failed' && (await failureView(jobService, job, buttons));
  const tiles = tilesView(job, {
    plan,
    selected: filter?.component ?? null,
    hrefOf: (component) => `${page.here()}?component=${encodeURIComponent(component)}#messages`,
    ...(failure && { open: failure }),
  });
  return html`<section aria-labelledby="job" ${isFollowed ? html`data-running="${job.id}"` : html`data-ended="${endOf(job)}" data-job="${job.id}"`}>
    ${isRunning && followLine(page, isFollowed)}
    <div id="job-state" ${isFollowed && html`data-live="1"`}>
    <h2 id="job">${heading} ${stateView(job)}</h2>
    <p>
      Started by ${job.startedBy}
      ${isRunning ? html`at ${renderTime(job.startedAt)}` : renderAgo(job.startedAt, at)}${
        job.endedAt !== null && html`, ended ${renderAgo(job.endedAt, at)}`
      }.
      ${!isRunning && html`<a href="${page.href('system', 'jobs', job.id)}?view=report">Printable report</a>`}
    </p>
    ${job.state === 'cancelled' && job.reason !== null && html`<p>${job.reason}</p>`} ${progressView(job, at)}
    ${phasesView(job, plan, at)} ${failed === undefined && failure} ${tiles}
    ${!failure && buttons}
    <h3 id="messages">${filter ? html`Messages about ${filter.component}` : 'Messages'}</h3>
    ${job.messageCount > 0 && messages.count === 0 ? removedMessages : messagesView(job, messages, filter, page)}
    </div>
  </section>`;
}

/** The script announces this to a reader who has followed the job. */
function endOf(job: Job): string | undefined {
  const { state, reason } = job;
  if (state === 'in_progress') return undefined;
  return `${jobTitle(job)}: ${stateLabel(job)}.${state === 'failed' && reason !== null ? ` ${reason}` : ''}`;
}

/** The messages about one component: those that name it or one of its workloads. */
type MessageFilter = { readonly component: string; readonly names: readonly string[] };

function filterOf(job: Job, plan: Plan | undefined, component: string | null): MessageFilter | undefined {
  const tile = tilesOf(job, plan).find(({ name }) => name === component);
  return tile && { component: tile.name, names: [tile.name, ...tile.workloads] };
}

async function readMessages(
  jobService: JobService,
  job: Job,
  filter: MessageFilter | undefined,
): Promise<JobMessages> {
  if (!filter) return jobService.messages(job, Math.max(0, job.messageCount - maxMessages));
  const { messages, count } = await jobService.messages(job);
  const found = messages.filter(({ message }) => filter.names.some((name) => message.includes(name)));
  return { messages: found.slice(-maxMessages), count };
}

/** What has failed, the messages before it, and the button to go on. */
async function failureView(jobService: JobService, job: Job, buttons: Html | false): Promise<Html> {
  const { messages } = await jobService.messages(job, Math.max(0, job.messageCount - lastMessages));
  return html`<div class="failure" id="failure">
    <p class="problem">${job.reason}</p>
    ${buttons}
    ${
      messages.length > 0 &&
      html`<details open>
        <summary>Last messages</summary>
        <ol class="plain-log">
          ${messages.map((message) => messageView(message))}
        </ol>
      </details>`
    }
  </div>`;
}

function progressView(job: Job, at: number): Html {
  const { done, total, steps, percent, elapsedMs, remainingMs } = jobProgress(job, at);
  const isRunning = job.state === 'in_progress';
  const isResumed = job.runStartedAt !== job.startedAt;
  const remaining: Figure = { label: 'Remaining', value: formatRemaining(remainingMs) };
  const run: Figure = { label: isRunning ? 'This run' : 'Last run', value: formatDuration(elapsedMs) };
  const style = (job.state === 'failed' || job.state === 'success') && html`class="${job.state}"`;
  const tenths = Math.floor(percent / 10);
  return html`<progress max="100" value="${percent}" aria-labelledby="job" ${style} ${isRunning && html`data-percent="${percent}"`}>${percent} %</progress>
    ${isRunning && html`<p class="unseen" role="status">${tenths > 0 && `${tenths * 10} % reached.`}</p>`}
    ${figuresView([
      { label: 'Done', value: `${percent} %` },
      { label: 'Steps', value: `${steps.done} of ${steps.total}` },
      { label: 'Deployments', value: `${done} of ${total}` },
      { label: isRunning ? 'Elapsed' : 'Duration', value: formatDuration(durationOf(job, at)) },
      ...(isResumed ? [run] : []),
      ...(isRunning ? [remaining] : []),
    ])}`;
}

function formatRemaining(ms: number | null): string {
  if (ms === null) return 'not known yet';
  return ms < 10_000 ? 'a few seconds' : `about ${formatDuration(ms)}`;
}

function followLine(page: PageContext<unknown>, isFollowed: boolean): Html {
  const reload = html`<a href="${page.here()}">Reload this page</a> to see the progress.`;
  if (!isFollowed) return html`<p class="hint">${reload}</p>`;
  return html`<p class="hint" data-notify>
    <span data-needs-script hidden>This page updates itself.</span> <noscript>${reload}</noscript>
  </p>`;
}

function actions(
  store: ReadableStore,
  job: Job,
  plan: Plan | undefined,
  page: PageContext<unknown>,
): Html | false {
  const { href, here, formToken } = page;
  const button = (operation: 'cancel' | 'resume', label: string) =>
    formToken === ''
      ? signInHint(page, `${operation} it`)
      : actionButton({
          label,
          formToken,
          next: here(),
          isDestructive: operation === 'cancel',
          isPrimary: operation === 'resume',
          action: href('system', 'jobs', job.id, operation),
        });
  if (reasonNotToResume(store, job) === undefined) {
    const continues = job.reverting
      ? 'puts the other workloads back to their former images'
      : `continues the ${job.operation} at the first step that is not done`;
    const version = formatVersion(newestInstalled(store.read(deployment)));
    return html`${button('resume', resumeLabel(job))}
      <p>Resume ${continues}. The version is ${version === job.from ? 'still' : 'now'} ${version}.</p>`;
  }
  if (job.state !== 'in_progress') return false;
  if (job.cancelledBy !== null && !job.reverting) {
    return html`<p>${job.cancelledBy} has asked to cancel it. It ends after the current step.</p>`;
  }
  const stoppedBy = job.reverting?.stoppedBy;
  if (stoppedBy !== undefined) {
    return html`<p>
      ${stoppedBy} has asked to stop putting workloads back. The job ends after the current one.
    </p>`;
  }
  const why = reasonNotToCancel(store, job, plan);
  if (why === undefined)
    return button('cancel', job.reverting ? 'Stop putting workloads back' : 'Cancel this job');
  return html`<p class="hint">
    ${hasNextHop(job) ? 'It cannot be cancelled now, only between two steps.' : `It cannot be cancelled: ${why}.`}
  </p>`;
}

function hasNextHop({ hops }: Job): boolean {
  return hops !== null && hops.done + 1 < hops.all.length;
}

const removedMessages = html`<p>
  The messages of this job were removed: the server keeps those of the newest jobs only. The variable
  <code>JOB_HISTORY</code> sets how many jobs keep their messages.
</p>`;

function messagesView(
  job: Job,
  { messages, count }: JobMessages,
  filter: MessageFilter | undefined,
  { href, here }: PageContext<unknown>,
): Html {
  const all = href('system', 'jobs', job.id);
  const newest = count > maxMessages && !filter && `The page shows the newest ${formatNumber(maxMessages)}. `;
  return html`<p class="hint">
      ${
        filter
          ? html`${formatCount(messages.length, 'message')}. <a href="${here()}#messages">Show all messages</a>`
          : html`${formatCount(count, 'message')}. ${newest}<a href="${all}?f=json">All messages as JSON</a>`
      }
    </p>
    <div class="messages" tabindex="0" role="region" aria-label="Messages, the newest last">
      <ol>
        ${messages.map((message, index) => messageView(message, filter ? undefined : count - messages.length + index))}
      </ol>
    </div>`;
}

/** `number` identifies the line while the page updates itself. */
export function messageView({ code, message, when }: Message, number?: number): Html {
  return html`<li ${number !== undefined && html`id="message-${number}"`} data-code="${code}">${renderTime(when)} <code>${code}</code> <span>${message}</span></li> `;
}
