// The pages of jobs: the list, and one job with its state, progress, messages and actions. While a job runs, the script of the
// pages updates the attributes `data-…`; without a script the reader reloads the page.
import type { PageContext, View } from '../../rest/resource.ts';
import { actionButton } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import { type Row, renderPager, pageRange, renderTable } from '../../rest/html/table.ts';
import type { Runtime } from '../../runtime.ts';
import type { ReadableStore } from '../../store/store.ts';
import { formatDuration } from '../../lib/format.ts';
import { deployment, newestInstalled } from '../deployment.ts';
import { formatVersion } from '../manifest.ts';
import { endsOfCancelling, reasonNotToCancel, reasonNotToResume } from '../job.ts';
import type { JobService } from '../job-service.ts';
import type { Job, JobState } from '../job-table.ts';
import type { Message } from '../messages.ts';
import { type JobMessages, jobProgress } from '../job-status.ts';

/** A release of thousands of workloads has more messages than a page can show. */
const maxMessages = 200;

const states: Readonly<Record<JobState, { label: string; className: string }>> = {
  in_progress: { label: 'In progress', className: 'busy' },
  success: { label: 'Succeeded', className: 'good' },
  failed: { label: 'Failed', className: 'bad' },
  cancelled: { label: 'Cancelled', className: 'warn' },
};

function jobTitle({ operation, from, to }: Job): string {
  return `${operation === 'upgrade' ? 'Upgrade' : 'Rollback'} from ${from} to ${to}`;
}

function stateView({ state }: Job): Html {
  const { label, className } = states[state];
  return html`<span class="state ${className}">${label}</span>`;
}

export function jobListView(jobService: JobService): View<unknown> {
  return async (page) => {
    const range = pageRange(page.query, { usual: 25 });
    const { jobs, total } = await jobService.page(range.start, range.num);
    if (total === 0) return html`<p>There has been no job yet.</p>`;
    const rows = jobs.map((job): Row => [
      html`<a href="${page.here(job.id)}">${jobTitle(job)}</a>`,
      stateView(job),
      renderTime(job.startedAt),
      job.endedAt === null ? html`<span class="none">–</span>` : renderTime(job.endedAt),
      html`${job.startedBy}`,
    ]);
    return html`${renderTable('Jobs', ['Job', 'State', 'Started', 'Ended', 'By'], rows)}
    ${renderPager('Jobs', range, total)}`;
  };
}

export type JobViewOptions = { store: ReadableStore; runtime: Runtime; jobService: JobService };

export async function jobView(
  { store, runtime, jobService }: JobViewOptions,
  job: Job,
  page: PageContext<unknown>,
): Promise<Html> {
  const at = runtime.now();
  const messages = await jobService.messages(job, Math.max(0, job.messageCount - maxMessages));
  const isRunning = job.state === 'in_progress';
  const { elapsedMs, remainingMs } = jobProgress(job, at);
  const follow = html`data-follow="${page.href('system', 'upgrades')}?${followQuery(job)}" data-after="${messages.count}"
  data-elapsed="${elapsedMs}" data-remaining="${remainingMs}"`;
  // The script needs the session cookie to send requests. A page that was opened with a bearer token has none.
  const isFollowed = isRunning && page.formToken !== '';
  return html`<section aria-labelledby="job" ${isFollowed && follow}>
    <h2 id="job">${jobTitle(job)} ${stateView(job)}</h2>
    <p>
      Started by ${job.startedBy} at
      ${renderTime(job.startedAt)}${job.endedAt !== null && html`, ended at ${renderTime(job.endedAt)}`}.
    </p>
    ${job.reason !== null && html`<p class="${job.state === 'failed' ? 'problem' : ''}">${job.reason}</p>`}
    ${progressView(job, at)} ${isRunning && statusLine(page)} ${await actions(store, job, page)}
    <h3>Messages</h3>
    ${messages.count === 0 ? removedMessages : messagesView(job, messages, page)}
  </section>`;
}

function followQuery(job: Job): string {
  return new URLSearchParams({ f: 'json', wait: '30', jobId: job.id }).toString();
}

function progressView(job: Job, at: number): Html {
  const { done, total, steps, percent, elapsedMs, remainingMs } = jobProgress(job, at);
  const remaining: Figure = { label: 'Remaining', value: formatRemaining(remainingMs), id: 'remaining' };
  return html`<progress max="100" value="${percent}" aria-labelledby="job">
      ${percent} %
    </progress>
    ${figuresView([
      { label: 'Deployments', value: `${done} of ${total}`, id: 'done' },
      ...(steps ? [{ label: 'Steps', value: `${steps.done} of ${steps.total}`, id: 'steps' }] : []),
      { label: 'Done', value: `${percent} %`, id: 'percent' },
      { label: 'Elapsed', value: formatDuration(elapsedMs), id: 'elapsed' },
      ...(job.state === 'in_progress' ? [remaining] : []),
    ])}`;
}

/** The script of the pages finds the value by `id`. */
export type Figure = { readonly label: string; readonly value: string; readonly id?: string };

export function figuresView(figures: readonly Figure[]): Html {
  return html`<dl class="figures">
    ${figures.map(
      ({ label, value, id }) =>
        html`<div>
          <dt>${label}</dt>
          <dd ${id !== undefined && html`data-figure="${id}"`}>${value}</dd>
        </div> `,
    )}
  </dl>`;
}

/** The script of the pages uses the same words. */
function formatRemaining(ms: number | null): string {
  if (ms === null) return 'not known yet';
  return ms < 10_000 ? 'a few seconds' : `about ${formatDuration(ms)}`;
}

/** Screen readers announce this line when the script changes it. */
function statusLine(page: PageContext<unknown>): Html {
  return html`<p class="hint" role="status" data-live-status>
    <a href="${page.here()}">Reload this page</a> to see the progress.
  </p>`;
}

/** Replaces a button that would not work without a session. */
export function signInHint({ here }: PageContext<unknown>, purpose: string): Html {
  return html`<p class="hint"><a href="${here()}">Sign in</a> with this browser to ${purpose}.</p>`;
}

async function actions(store: ReadableStore, job: Job, page: PageContext<unknown>): Promise<Html | false> {
  const { href, here, formToken } = page;
  const button = (operation: 'cancel' | 'resume', label: string) =>
    formToken === ''
      ? signInHint(page, `${operation} it`)
      : actionButton({
          label,
          formToken,
          next: here(),
          isDestructive: operation === 'cancel',
          action: href('system', 'jobs', job.id, operation),
        });
  if (reasonNotToResume(store, job) === undefined) {
    const continues = job.reverting
      ? 'puts the other workloads back to their former images'
      : 'continues at the first step that is not done';
    const version = formatVersion(newestInstalled(store.read(deployment)));
    return html`<p>
        Resume ${continues}. The version is ${version === job.from ? 'still' : 'now'} ${version}.
      </p>
      ${button('resume', 'Resume')}`;
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
  const plan = job.kind === 'release' ? await store.jobs.plan(job.id) : undefined;
  const why = reasonNotToCancel(store, job, plan);
  const canLater = hasNextHop(job);
  if (why !== undefined && !canLater) return html`<p class="hint">It cannot be cancelled: ${why}.</p>`;
  // The script shows one of both parts: the second one from a message with one of the codes on, the first one from 2270 of a hop on.
  return html`<div class="hint" data-until="${endsOfCancelling(job).join(' ')}">
    <div ${why !== undefined && html`hidden`}>
      ${button('cancel', job.reverting ? 'Stop putting workloads back' : 'Cancel this job')}
    </div>
    <p ${why === undefined && html`hidden`}>
      ${canLater ? 'It cannot be cancelled now, only between hops.' : 'It can no longer be cancelled.'}
    </p>
  </div>`;
}

function hasNextHop({ hops = [], hopsDone = 0 }: Job): boolean {
  return hopsDone + 1 < hops.length;
}

const removedMessages = html`<p>
  The messages of this job were removed: the server keeps those of the newest jobs only. The variable
  <code>JOB_HISTORY</code> sets how many jobs keep their messages.
</p>`;

function messagesView(job: Job, { messages, count }: JobMessages, { href }: PageContext<unknown>): Html {
  return html`<p class="hint">
      <span data-figure="messages">${count}</span> in all; at most the newest ${maxMessages} are shown here,
      <a href="${href('system', 'jobs', job.id)}?f=json">all of them are in the JSON</a>.
    </p>
    <div class="messages" tabindex="0" role="region" aria-label="Messages, the newest last">
      <ol data-messages="${maxMessages}">
        ${messages.map(messageView)}
      </ol>
    </div>`;
}

function messageView({ code, message, when }: Message): Html {
  return html`<li data-code="${code}">${renderTime(when)} <code>${code}</code> <span>${message}</span></li> `;
}
