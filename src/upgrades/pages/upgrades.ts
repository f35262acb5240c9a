// The upgrades page: where the deployment stands, where it can go, the procedure that leads there, and the job on its way.
import type { PageContext, View } from '../../rest/resource.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { type Mode, currentMode } from '../../mode/mode.ts';
import { newestJob } from '../job-table.ts';
import { jobView } from './jobs.ts';
import { upgradeWizard } from './operations.ts';
import type { OperationsOptions } from '../operations.rest.ts';
import { availableView, installedView, rollbackView } from './versions.ts';

export function upgradesPage(options: OperationsOptions): View<unknown> {
  const { store, runtime } = options;
  return async (page) => {
    const job = newestJob(store);
    const isRunning = job?.state === 'in_progress';
    const mode = currentMode(store, isRunning);
    const mayStart = !mode.isReadOnly;
    const jobPart = job && jobView(store, job, runtime.now(), page);
    const installed = installedView(store);
    const notices = html`${mode.isReadOnly && readOnlyNotice(mode, page)} ${page.formToken === '' && noSession(page)}`;
    if (isRunning) {
      return html`${notices} ${jobPart} ${installed}
        <p class="hint">Another version can be chosen when this job has ended.</p>`;
    }
    const chosen = page.query.get('version') ?? '';
    const procedure = chosen !== '' && (await upgradeWizard(options, chosen, mayStart, page));
    return html`${notices} ${installed} ${procedure || jobPart} ${availableView(store, page)}
    ${rollbackView(store, mayStart, page)} ${procedure && jobPart}`;
  };
}

function noSession({ here }: PageContext<unknown>): Html {
  return html`<p class="notice">
    This page was opened without a session: <a href="${here()}">sign in</a> with this browser to start, stop or
    follow anything here.
  </p>`;
}

function readOnlyNotice({ reason, message }: Mode, { href }: PageContext<unknown>): Html {
  return html`<p class="notice">
    <strong>The system is read-only.</strong> ${message}
    ${
      reason === 'administrator' &&
      html`Nothing can be uploaded or started before
        <a href="${href('mode', 'update')}">read-only mode is turned off</a>.`
    }
  </p>`;
}
