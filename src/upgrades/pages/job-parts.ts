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
import { renderAgo, renderTime } from '../../console/time.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { JobService } from '../jobs/job-service.ts';
import { type Job, type JobState, isOpen } from '../jobs/job-table.ts';

const states: Readonly<Record<JobState, { label: string; className: string }>> = {
  scheduled: { label: 'Scheduled', className: 'busy' },
  in_progress: { label: 'In progress', className: 'busy' },
  success: { label: 'Succeeded', className: 'good' },
  failed: { label: 'Failed', className: 'bad' },
  cancelled: { label: 'Cancelled', className: 'warn' },
};

/** The button says in which direction the job continues. */
export function resumeButton({ id, reverting }: Job, page: PageContext<unknown>, next: string): Html | false {
  return pageButton(page, {
    label: reverting ? 'Resume putting back' : 'Resume',
    action: page.href('system', 'jobs', id, 'resume'),
    next,
    isPrimary: true,
    worksWhileReadOnly: true,
  });
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

/** Empty if the failed job has changed nothing that it has not put back. */
export function mixtureText({ operation, workloadsDone: done, workloads }: Job): string {
  const images = operation === 'upgrade' ? 'new' : 'former';
  return done === 0
    ? ''
    : `${done} of ${formatCount(workloads, 'deployment')} already ${done === 1 ? 'runs' : 'run'} the ${images} images.`;
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
        const { state, startAt, reason } = job;
        return html`${stateView(job)} ${state === 'scheduled' && startAt !== null && renderTime(startAt)} ${!isOpen(job) && reason !== null && html`<span class="hint" title="${reason}">${reason}</span>`}`;
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
