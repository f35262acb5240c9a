// The list of all jobs, newest first.
import { renderAgo, renderTime } from '../../console/time.ts';
import {
  type Row,
  pageRange,
  renderEmpty,
  renderList,
  renderMenu,
  renderPager,
  renderToolbar,
} from '../../console/table.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
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
    if (total === 0)
      return renderEmpty('There has been no job yet. An upgrade or a rollback starts one.', {
        href: page.href('system', 'upgrades'),
        label: 'Go to upgrades',
      });
    return html`${renderToolbar({ action: page.here(), count: formatCount(total, 'job') })} ${jobTable('Jobs', jobs, page)}
    ${renderPager('Jobs', range, total)}`;
  };
}

const maxLast = 5;

export async function lastJobs(jobService: JobService, page: PageContext<unknown>): Promise<Html | false> {
  const { jobs } = await jobService.page(0, maxLast);
  const here = (...beneath: readonly string[]) => page.href('system', 'jobs', ...beneath);
  const [newest] = jobs;
  return (
    newest !== undefined &&
    html`<section aria-labelledby="last" data-ended="${endOf(newest)}" data-job="${newest.id}">
      <h2 id="last">Last jobs</h2>
      ${jobTable('Last jobs', jobs, { ...page, here })}
      <p><a href="${here()}">All jobs</a></p>
    </section>`
  );
}

function jobTable(label: string, jobs: readonly Job[], page: PageContext<unknown>): Html {
  const columns = ['Job', 'State', 'Started', 'Duration', 'By', 'Actions'];
  return renderList(
    label,
    columns,
    jobs.map((job) => rowOf(job, page)),
  );
}

function rowOf(job: Job, page: PageContext<unknown>): Row {
  const { id, state, reason, startedAt, startedBy } = job;
  const isRunning = isOpen(job);
  return [
    html`<a href="${page.here(id)}">${jobTitle(job)}</a>`,
    html`${stateView(job)} ${state === 'scheduled' && job.startAt !== null && renderTime(job.startAt)} ${!isRunning && reason !== null && html`<span class="hint" title="${reason}">${reason}</span>`}`,
    startedAt === null ? '–' : renderAgo(startedAt, page.now),
    startedAt === null ? '–' : formatDuration(durationOf(job, page.now)),
    html`<bdi>${startedBy}</bdi>`,
    renderMenu(id, jobTitle(job), [
      html`<a href="${page.here(id)}">Open</a>`,
      !isRunning && html`<a href="${page.href('system', 'jobs', id)}?view=report">Printable report</a>`,
    ]),
  ];
}
