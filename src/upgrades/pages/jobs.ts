// The page of one job: its state in a head that stays in view, its phases, its components, and its messages. While a
// job runs, the script of the pages reads the page again every second; without a script the reader reloads it.
import { pageButton } from '../../console/action.ts';
import { renderAgo, renderClock, renderSentence, renderTime } from '../../console/time.ts';
import { renderSelect, renderToolbar, searchedIn } from '../../console/list.ts';
import { renderFacts } from '../../console/table.ts';
import { formatCount, formatDuration, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Runtime } from '../../lib/runtime.ts';
import type { PageContext } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { type JobService, jobProgress } from '../jobs/job-service.ts';
import { type Job, isOpen } from '../jobs/job-table.ts';
import { reasonNotToCancel, reasonNotToResume } from '../jobs/job.ts';
import type { Code, Message } from '../planning/messages.ts';
import type { Plan } from '../planning/plan.ts';
import { newestInstalled, readDeployment } from '../versions/deployment.ts';
import { formatVersion } from '../versions/manifest.ts';
import {
  durationOf,
  endOf,
  jobTitle,
  mixtureText,
  restoredText,
  scheduleActions,
  startView,
  stateView,
  resumeButton,
} from './job-parts.ts';
import { phasesView, tilesOf, tilesView } from './picture.ts';

/** A release of thousands of workloads has more messages than a page can show. */
const maxMessages = 200;

/** Failures, resumptions, cancellations, and workloads that were put back. */
const interventions: readonly number[] = [2901, 2902, 2903, 2904] satisfies readonly Code[];

type JobViewOptions = { store: ReadableStore; runtime: Runtime; jobService: JobService };

type PageOf = PageContext<unknown>;

/** A job as it is now. The plan of a job that has succeeded or was cancelled is deleted. */
type JobState = {
  readonly job: Job;
  readonly plan: Plan | undefined;
  readonly at: number;
  readonly store: ReadableStore;
  readonly page: PageOf;
};

async function readState(
  { store, runtime, jobService }: JobViewOptions,
  job: Job,
  page: PageOf,
): Promise<JobState> {
  const hasPlan = isOpen(job) || job.state === 'failed';
  const plan = hasPlan ? await jobService.plan(job) : undefined;
  return { job, plan, at: runtime.now(), store, page };
}

export async function jobView(options: JobViewOptions, job: Job, page: PageOf): Promise<Html> {
  const state = await readState(options, job, page);
  const { plan, at } = state;
  const filter = filterOf(job, plan, page.query);
  const messages = await readMessages(options.jobService, job, filter);
  return liveJob(
    state,
    html`${headView(state, 'Progress')}
      <p>${timesView(state)}</p>
      ${await eventsView(options.jobService, state)}
      ${phasesView(job, plan, at)}
      <div class="job-parts" id="job-parts" data-in-place>
        ${tilesView(job, plan, filter.component?.name)} ${logView(state, messages, filter)}
      </div>`,
  );
}

function timesView({ job, at }: JobState): Html {
  const { startedAt, endedAt, startedBy } = job;
  const start = `${startedAt === null ? 'Requested' : 'Started'} by ${startedBy}`;
  const began =
    startedAt !== null &&
    (endedAt === null ? html` at ${renderTime(startedAt)}` : html` ${renderAgo(startedAt, at)}`);
  return html`${start}${began}${endedAt !== null && html`, ended ${renderAgo(endedAt, at)}`}.`;
}

const maxEvents = 10;

/** When the job failed and was resumed. The last failure of a job that has failed is in its head. */
async function eventsView(jobService: JobService, { job, at }: JobState): Promise<Html | false> {
  if (job.failedAt === null || (job.state === 'failed' && job.run === 1)) return false;
  const { messages } = await jobService.messages(job);
  const events = messages.filter(({ code }) => code === 2901 || code === 2902).slice(-maxEvents);
  return html`<ul class="plain">
    ${events.map(({ message, when }) => html`<li>${renderAgo(when, at)} ${renderSentence(message)}</li> `)}
  </ul>`;
}

/** A job that needs attention, on a page about something else. */
export async function jobSummary(options: JobViewOptions, job: Job, page: PageOf): Promise<Html> {
  const state = await readState(options, job, page);
  const title = html`<a href="${page.href('system', 'jobs', job.id)}">${jobTitle(job)}</a>`;
  return liveJob(state, headView(state, title));
}

/** A page that was opened with a bearer token has no session, so the script cannot read it again. */
function liveJob({ job, page }: JobState, content: Html): Html {
  const isRunning = job.state === 'in_progress';
  const hasSession = page.formToken !== '';
  const seconds = isRunning ? 1 : job.state === 'scheduled' ? 10 : 0;
  return html`<section aria-labelledby="job" ${isRunning && hasSession ? html`data-running="${job.id}"` : html`data-ended="${endOf(job)}" data-job="${job.id}"`}>
    ${isRunning && followLine(page, hasSession)}
    <div id="job-state" ${hasSession && html`data-live="${seconds}"`}>${content}</div>
  </section>`;
}

function headView(state: JobState, heading: Html | string): Html {
  const { job, at } = state;
  const { button, text } = actionsOf(state);
  const isFailed = job.state === 'failed';
  const hint = text !== undefined && html`<p class="hint">${text}</p>`;
  return html`<div class="job-head">
      <h2 id="job">${heading} ${stateView(job)}</h2>
      ${job.state === 'scheduled' ? html`<p>${startView(job.startAt ?? 0, at)}</p>` : job.startedAt !== null && progressView(job, at)} ${button && html`<div class="actions">${button}</div>`}
    </div>
    ${isFailed && html`<div class="problems" id="failure"><p class="problem">${renderSentence(job.reason ?? '')}</p>${hint}</div>`}
    ${job.state === 'cancelled' && html`<p>${job.reason} ${restoredText(job)}</p>`} ${!isFailed && hint}`;
}

function progressView(job: Job, at: number): Html {
  const { done, total, steps, percent, elapsedMs, remainingMs, waitingFor } = jobProgress(job, at);
  const isRunning = job.state === 'in_progress';
  const isResumed = job.startedAt !== null && job.runStartedAt !== job.startedAt;
  const figures: [string, string][] = [
    ['Done', `${percent} %`],
    ['Steps', `${steps.done} of ${steps.total}`],
    ['Updates', `${done} of ${total}`],
    [isRunning ? 'Elapsed' : 'Duration', formatDuration(durationOf(job, at))],
  ];
  if (isResumed) figures.push([isRunning ? 'This run' : 'Last run', formatDuration(elapsedMs)]);
  if (isRunning) figures.push(['Remaining', formatRemaining(remainingMs)]);
  const style = (job.state === 'failed' || job.state === 'success') && html`class="${job.state}"`;
  const tenths = Math.floor(percent / 10);
  return html`${renderFacts(figures, 'figures')}
    <progress max="100" value="${percent}" aria-labelledby="job" ${style} ${isRunning && html`data-percent="${percent}"`}>${percent} %</progress>
    ${waitingFor && html`<p class="waiting">Waits for ${waitingFor.object} since ${renderAgo(waitingFor.since, at)}${waitingFor.isLate && ', longer than before'}: ${waitingFor.reason}.</p>`}
    ${isRunning && html`<p class="unseen" role="status">${tenths > 0 && `${tenths * 10} % reached.`}</p>`}`;
}

function formatRemaining(ms: number | null): string {
  if (ms === null) return 'not known yet';
  return ms < 10_000 ? 'a few seconds' : `about ${formatDuration(ms)}`;
}

function followLine(page: PageOf, isFollowed: boolean): Html {
  const reload = html`<a href="${page.here()}">Reload this page</a> to see the progress.`;
  if (!isFollowed) return html`<p class="hint">${reload}</p>`;
  return html`<p class="hint" data-notify><noscript>${reload}</noscript></p>`;
}

/** What the reader can do now, or why nothing can be done. */
function actionsOf({ store, job, plan, page }: JobState): {
  readonly button?: Html | false;
  readonly text?: Html | string;
} {
  if (reasonNotToResume(store, job) === undefined) {
    const continues = job.reverting
      ? 'puts the other workloads back to their former images'
      : `continues the ${job.operation} at the first step that is not done`;
    const version = formatVersion(newestInstalled(readDeployment(store)));
    return {
      button: resumeButton(store, job, page, page.here()),
      text: `Resume ${continues}. The version is ${version === job.from ? 'still' : 'now'} ${version}. ${plan ? mixtureText(job, plan) : ''} ${restoredText(job)}`,
    };
  }
  const schedule = scheduleActions(job, page);
  if (schedule) return { button: schedule };
  if (job.state !== 'in_progress') return {};
  if (job.cancelledBy !== null && !job.reverting)
    return { text: `${job.cancelledBy} has asked to cancel it. It ends after the current step.` };
  const stoppedBy = job.reverting?.stoppedBy;
  if (stoppedBy !== undefined)
    return {
      text: `${stoppedBy} has asked to stop putting workloads back. The job ends after those that it has begun.`,
    };
  const why = reasonNotToCancel(store, job, plan);
  if (why === undefined) {
    const label = job.reverting ? 'Stop putting workloads back' : 'Cancel this job';
    const action = page.href('system', 'jobs', job.id, 'cancel');
    const rules = { isDestructive: true, worksWhileReadOnly: true } as const;
    const fields = job.reverting ? { stop: 'true' } : {};
    return { button: pageButton(page, { label, action, next: page.here(), fields, ...rules }) };
  }
  const hasNextHop = job.hops.done + 1 < job.hops.all.length;
  return {
    text: hasNextHop
      ? 'It cannot be cancelled now, only between two versions.'
      : `It cannot be cancelled: ${why}.`,
  };
}

/** Which messages the page shows. Those about a component name it or one of its workloads. */
type MessageFilter = {
  readonly component: { readonly name: string; readonly names: readonly string[] } | undefined;
  readonly text: string;
  readonly areErrors: boolean;
};

function filterOf(job: Job, plan: Plan | undefined, query: URLSearchParams): MessageFilter {
  const tile = tilesOf(job, plan).find(({ name }) => name === query.get('component'));
  return {
    component: tile && { name: tile.name, names: [tile.name, ...tile.workloads] },
    text: searchedIn(query),
    areErrors: query.get('show') === 'errors',
  };
}

type ShownMessages = {
  /** `number` is the position of the message in the job. */
  readonly lines: readonly { readonly message: Message; readonly number: number }[];
  readonly count: number;
  readonly found: number;
};

async function readMessages(
  jobService: JobService,
  job: Job,
  { component, text, areErrors }: MessageFilter,
): Promise<ShownMessages> {
  const isFiltered = component !== undefined || text !== '' || areErrors;
  const after = isFiltered ? 0 : Math.max(0, job.messageCount - maxMessages);
  const { messages, count } = await jobService.messages(job, after);
  const words = text.toLowerCase();
  const found = messages
    .map((message, index) => ({ message, number: after + index }))
    .filter(
      ({ message: { code, message } }) =>
        (!component || component.names.some((name) => message.includes(name))) &&
        (!areErrors || interventions.includes(code)) &&
        (words === '' || `${code} ${message.toLowerCase()}`.includes(words)),
    );
  return { lines: found.slice(-maxMessages), count, found: isFiltered ? found.length : count };
}

const removedMessages = html`<p>
  The messages of this job were removed. The variable <code>JOB_HISTORY</code> sets how many jobs keep theirs.
</p>`;

function logView({ job, page }: JobState, shown: ShownMessages, filter: MessageFilter): Html {
  const { lines, count, found } = shown;
  if (job.messageCount > 0 && count === 0) return removedMessages;
  const { component, text, areErrors } = filter;
  const isCut = found > lines.length;
  const kinds = [{ value: 'errors', label: 'Errors only' }];
  return html`<section class="log" aria-labelledby="messages">
    <h3 id="messages">${component ? `Messages about ${component.name}` : 'Messages'}</h3>
    ${renderToolbar({
      action: '',
      search: { label: 'Search messages', value: text },
      filters: [renderSelect('show', 'Kind', 'All messages', kinds, areErrors ? 'errors' : '')],
      keep: component ? { component: component.name } : {},
    })}
    <p class="hint">
      ${found < count && `${formatNumber(found)} of `}${formatCount(count, 'message')}${isCut && `, the newest ${formatNumber(maxMessages)} are shown`}.
      ${found < count && html`<a href="?">Show all</a>`}
      <a href="${page.href('system', 'jobs', job.id)}?f=csv">Download</a>
      ${
        job.state === 'in_progress' &&
        html`<label data-needs-script><input type="checkbox" id="follow" checked /> Follow</label>`
      }
    </p>
    <div class="messages" tabindex="0" role="region" aria-label="Messages, the newest last">
      <ol>
        ${lines.map(({ message, number }, index) => lineView(message, lines[index - 1]?.message, number))}
      </ol>
    </div>
  </section>`;
}

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/** `number` identifies the line while the page updates itself. The date is shown where it changes. */
function lineView({ code, message, when }: Message, before: Message | undefined, number: number): Html {
  return html`${(!before || dayOf(before.when) !== dayOf(when)) && html`<li class="day" id="day-${dayOf(when)}">${renderTime(when)}</li> `}
    <li id="message-${number}" data-code="${code}">${renderClock(when)} <code>${code}</code> <span>${renderSentence(message)}</span></li> `;
}
