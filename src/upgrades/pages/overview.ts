// The upgrades page: the installed version, the newest job, the available versions, or one step of the upgrade wizard.
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { isJobRunning, newestJob } from '../jobs/job-table.ts';
import type { OperationsOptions } from '../operations.rest.ts';
import { jobView } from './jobs.ts';
import { upgradeWizard } from './wizard.ts';
import { availableView, installedView, recommendedView, rollbackView } from './versions.ts';

export function upgradesPage(options: OperationsOptions): View<unknown> {
  const { store } = options;
  return async (page) => {
    const job = store.read(newestJob);
    const mayStart = !page.isReadOnly;
    const notice = page.formToken === '' && sessionNotice(page);
    const installed = await installedView(options, page);
    if (isWizard(store, page.query))
      return html`${notice} ${installed} ${await upgradeWizard(options, chosenVersion(page.query), mayStart, page)}`;
    const jobSection = job && html`${await jobView(options, job, page)} ${allJobs(page)}`;
    if (job?.state === 'in_progress') return html`${notice} ${jobSection} ${installed}`;
    const isFailed = job?.state === 'failed';
    return html`${notice} ${isFailed && jobSection} ${installed} ${!isFailed && recommendedView(store, page)}
    ${availableView(store, page)} ${rollbackView(store, mayStart, page)} ${!isFailed && jobSection}`;
  };
}

const chosenVersion = (query: URLSearchParams) => query.get('version') ?? '';

/** Whether the page shows a step of the wizard. While a job runs, it shows the job instead. */
export function isWizard(store: ReadableStore, query: URLSearchParams): boolean {
  return chosenVersion(query) !== '' && !isJobRunning(store);
}

function allJobs({ href }: PageContext<unknown>): Html {
  return html`<p><a href="${href('system', 'jobs')}">All jobs</a></p>`;
}

function sessionNotice({ here }: PageContext<unknown>): Html {
  return html`<p class="notice">
    This page was opened without a session. <a href="${here()}">Sign in</a> with this browser to start, cancel or
    follow a job.
  </p>`;
}
