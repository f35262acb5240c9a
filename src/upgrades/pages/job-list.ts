// The list of all jobs, newest first.
import { renderAgo } from '../../console/json.ts';
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
import { html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { JobService } from '../jobs/job-service.ts';
import type { Job } from '../jobs/job-table.ts';
import { jobTitle, stateView } from './job-parts.ts';
import { durationOf } from './jobs.ts';

export function jobListView(jobService: JobService): View<unknown> {
  return async (page) => {
    const range = pageRange(page.query, { usual: 25 });
    const { jobs, total } = await jobService.page(range.start, range.num);
    if (total === 0)
      return renderEmpty('There has been no job yet. An upgrade or a rollback starts one.', {
        href: page.href('system', 'upgrades'),
        label: 'Go to upgrades',
      });
    return html`${renderToolbar({ action: page.here(), count: formatCount(total, 'job') })}
      ${renderList(
        'Jobs',
        ['Job', 'State', 'Started', 'Duration', 'By', 'Actions'],
        jobs.map((job) => rowOf(job, page)),
      )}
      ${renderPager('Jobs', range, total)}`;
  };
}

function rowOf(job: Job, page: PageContext<unknown>): Row {
  const { id, state, reason, startedAt, startedBy } = job;
  const isRunning = state === 'in_progress';
  return [
    html`<a href="${page.here(id)}">${jobTitle(job)}</a>`,
    html`${stateView(job)} ${!isRunning && reason !== null && html`<span class="hint" title="${reason}">${reason}</span>`}`,
    renderAgo(startedAt, page.now),
    formatDuration(durationOf(job, page.now)),
    html`<bdi>${startedBy}</bdi>`,
    renderMenu(id, jobTitle(job), [
      html`<a href="${page.here(id)}">Open</a>`,
      !isRunning && html`<a href="${page.href('system', 'jobs', id)}?view=report">Printable report</a>`,
    ]),
  ];
}
