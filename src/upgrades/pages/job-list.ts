// The list of all jobs, newest first.
import {
  type ListColumn,
  allEntries,
  pageRange,
  renderEmpty,
  renderEntries,
  renderListPage,
} from '../../console/list.ts';
import { renderAgo, renderTime } from '../../console/time.ts';
import { formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { JobService } from '../jobs/job-service.ts';
import { type Job, isOpen } from '../jobs/job-table.ts';
import { jobTitle, stateView } from './job-parts.ts';
import { durationOf, endOf } from './jobs.ts';

export function jobListView(jobService: JobService): View<unknown> {
  return async (page) => {
    const range = pageRange(page.query, { usual: 25 });
    const { jobs, total } = await jobService.page(range.start, range.num);
    return renderListPage(
      page,
      { shown: jobs, total, range, keep: {} },
      {
        noun: 'job',
        columns: jobColumns(page, ({ id }) => page.here(id)),
        empty: renderEmpty('There has been no job yet. An upgrade or a rollback starts one.', {
          href: page.href('system', 'upgrades'),
          label: 'Go to upgrades',
        }),
      },
    );
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
    { label: 'State', cell: stateCell },
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

function stateCell(job: Job): Html {
  const { state, startAt, reason } = job;
  return html`${stateView(job)} ${state === 'scheduled' && startAt !== null && renderTime(startAt)} ${!isOpen(job) && reason !== null && html`<span class="hint" title="${reason}">${reason}</span>`}`;
}
