// Small parts of pages about jobs: title, state, figures, and the list of jobs.
import { formHref, linkButton, pageButton } from '../../console/action.ts';
import {
  type ListColumn,
  allEntries,
  pageRange,
  renderEmpty,
  renderEntries,
  renderListPage,
} from '../../console/list.ts';
import { renderAgo, renderSentence, renderTime } from '../../console/time.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { Reader } from '../../store/state.ts';
import { maintenanceWindows, windowsAt } from '../schedule/windows.ts';
import type { JobService } from '../jobs/job-service.ts';
import { type Job, type JobState, isOpen, newestJob } from '../jobs/job-table.ts';
import type { Plan } from '../planning/plan.ts';

const states: Readonly<Record<JobState, { label: string; className: string }>> = {
  scheduled: { label: 'Scheduled', className: 'busy' },
  in_progress: { label: 'In progress', className: 'busy' },
  success: { label: 'Succeeded', className: 'good' },
  failed: { label: 'Failed', className: 'bad' },
  cancelled: { label: 'Cancelled', className: 'warn' },
};

/** Says in which direction the job continues. While no maintenance window is open, a form asks first. */
export function resumeButton(
  reader: Reader,
  { id, reverting }: Job,
  page: PageContext<unknown>,
  next: string,
): Html | false {
  const label = reverting ? 'Resume putting back' : 'Resume';
  const action = page.href('system', 'jobs', id, 'resume');
  if (page.formToken !== '' && !windowsAt(reader.read(maintenanceWindows), page.now).open)
    return html`<a class="button" href="${formHref(page, action, { next })}">${label} outside of the windows …</a>`;
  return pageButton(page, { label, action, next, isPrimary: true, worksWhileReadOnly: true });
}

export function jobTitle({ operation, from, to }: Job): string {
  return `${operation === 'upgrade' ? 'Upgrade' : 'Rollback'} from ${from} to ${to}`;
}

/** The script announces this to a reader who has followed the job. */
export function endOf(job: Job): string | undefined {
  const { state, reason } = job;
  if (isOpen(job)) return undefined;
  const label = states[state].label.toLowerCase();
  return `${jobTitle(job)}: ${label}.${state === 'failed' && reason !== null ? ` ${reason}` : ''}`;
}

export function stateView({ state }: Job): Html {
  const { label, className } = states[state];
  return html`<span class="state ${className}">${label}</span>`;
}

/** Of all runs, with the time between them. 0 if the job has not started. */
export function durationOf({ startedAt, endedAt }: Job, now: number): number {
  return startedAt === null ? 0 : Math.max(0, (endedAt ?? now) - startedAt);
}

/** How to continue after a failed job, which blocks other upgrades. */
export function repairText({ to, reverting }: Job, isNewest: boolean): string {
  if (reverting)
    return `The job to ${to} has not put back all of its workloads. Resume it to put the others back.`;
  const remedy = isNewest ? 'Resume it, or upgrade to that version again.' : 'Upgrade to that version again.';
  return `The job to ${to} has failed. ${remedy}`;
}

/** Of the version that a failed job was installing. Empty if the job has changed nothing that it has not put back. */
export function mixtureText({ operation, workloadsDone, hops }: Job, { steps }: Plan): string {
  const moves = steps.flatMap(({ hop = 0, counts, subject }) =>
    counts && hop === hops.done ? { subject, isDone: counts.done <= workloadsDone } : [],
  );
  const namesOf = (some: typeof moves) => new Set(some.map(({ subject }) => subject)).size;
  const done = namesOf(moves.filter(({ isDone }) => isDone));
  const images = operation === 'upgrade' ? 'new' : 'former';
  return done === 0
    ? ''
    : `${done} of ${formatCount(namesOf(moves), 'deployment')} already ${done === 1 ? 'runs' : 'run'} the ${images} images.`;
}

/** Of a patch that failed or was cancelled, and has put every workload back. */
export function restoredText({ kind, state, from, startedAt, reverting, timeline }: Job): string {
  const isRestored = ['failed', 'cancelled'].includes(state) && kind === 'patch' && !reverting;
  if (!isRestored || startedAt === null) return '';
  const hasMoved = timeline.phases.some(({ name, ms }) => name === 'deployments' && ms > 0);
  return hasMoved ? `All deployments run ${from} again.` : `All deployments still run ${from}.`;
}

/** A sentence of the API with the title of the job, which leads to it, instead of its id. */
export function linkJob(text: string, reader: Reader, page: PageContext<unknown>): Html {
  const job = reader.read(newestJob);
  const [before = '', after] = text.split(`The job ${job?.id}`);
  if (!job || after === undefined) return renderSentence(text);
  return html`${before}<a href="${page.href('system', 'jobs', job.id)}">${jobTitle(job)}</a>${renderSentence(after)}`;
}

/** A countdown, as of the last read of the page. */
export function startView(startAt: number, now: number): Html {
  const left = startAt - now;
  return left > 0
    ? html`Starts in <strong>${formatDuration(left)}</strong>, at ${renderTime(startAt)}`
    : html`Due since ${renderTime(startAt)}. It starts as soon as a maintenance window is open.`;
}

/** To the form of a rollback, which then leads to the page of the new job. */
export function rollbackLink(page: PageContext<unknown>): Html {
  const next = page.href('system', 'jobs', '{jobId}');
  const form = formHref(page, page.href('system', 'upgrades', 'rollback'), { next });
  return linkButton(page, form, 'Roll back …', 'destructive');
}

/** Cancel and Move. */
export function scheduleActions(job: Job, page: PageContext<unknown>): Html | false {
  if (job.state !== 'scheduled' || page.formToken === '') return false;
  const at = (...operation: string[]) => page.href('system', 'jobs', job.id, ...operation);
  // Read-only mode does not refuse it.
  return html`<a class="destructive" href="${formHref(page, at('cancel'), { next: at() })}">Cancel …</a>
  ${linkButton(page, at('reschedule'), 'Reschedule …', 'plain')}`;
}

export function jobListView(jobService: JobService): View<unknown> {
  return async (page) => {
    const range = pageRange(page.query, { usual: 25 });
    const { jobs, total } = await jobService.page(range.start, range.num);
    const list = renderListPage(
      page,
      { shown: jobs, total, range, keep: {} },
      {
        noun: 'job',
        columns: jobColumns(page, ({ id }) => page.here(id)),
        empty: renderEmpty('There has been no job yet. An upgrade or a rollback starts one.'),
      },
    );
    return html`<div id="jobs" data-live="5">${list}</div>`;
  };
}

const maxLast = 5;

export async function lastJobs(jobService: JobService, page: PageContext<unknown>): Promise<Html | false> {
  const { jobs } = await jobService.page(0, maxLast);
  const [newest] = jobs;
  return (
    newest !== undefined &&
    html`<section aria-labelledby="last" data-ended="${endOf(newest)}" data-job="${newest.id}">
      <h2 id="last">Last jobs</h2>
      ${renderEntries(page, allEntries(jobs), { noun: 'job', label: 'Last jobs', columns: jobColumns(page, ({ id }) => page.href('system', 'jobs', id)) })}
      <p><a href="${page.href('system', 'jobs')}">All jobs</a></p>
    </section>`
  );
}

function jobColumns(page: PageContext<unknown>, hrefOf: (job: Job) => string): ListColumn<Job>[] {
  return [
    { label: 'Job', cell: (job) => html`<a href="${hrefOf(job)}">${jobTitle(job)}</a>` },
    {
      label: 'State',
      cell: (job) => {
        const { state, startAt, reason, failedAt } = job;
        const hasRecovered = failedAt !== null && state !== 'failed';
        return html`${stateView(job)} ${hasRecovered && html`<span class="hint">after a failure</span>`} ${state === 'scheduled' && startAt !== null && renderTime(startAt)} ${!isOpen(job) && reason !== null && html`<span class="hint" title="${reason}">${reason}</span>`}`;
      },
    },
    {
      label: 'Started',
      cell: ({ startedAt }) => (startedAt === null ? '–' : renderAgo(startedAt, page.now)),
    },
    {
      label: 'Duration',
      cell: (job) => (job.startedAt === null ? '–' : formatDuration(durationOf(job, page.now))),
    },
    { label: 'By', cell: ({ startedBy }) => html`<bdi>${startedBy}</bdi>` },
  ];
}
