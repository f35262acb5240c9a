// The upgrades page: the installed version, the available versions, the upgrade wizard, and the newest job.
import type { PageContext, View } from '../../rest/resource.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { type Mode, currentMode } from '../../mode/mode.ts';
import { newestJob } from '../job-table.ts';
import { jobView } from './jobs.ts';
import { upgradeWizard } from './operations.ts';
import type { OperationsOptions } from '../operations.rest.ts';
import { availableView, installedView, rollbackView } from './versions.ts';

export function upgradesPage(options: OperationsOptions): View<unknown> {
  const { store } = options;
  return async (page) => {
    const job = store.read(newestJob);
    const isRunning = job?.state === 'in_progress';
    const mode = currentMode(store, isRunning);
    const mayStart = !mode.isReadOnly;
    const jobSection = job && (await jobView(options, job, page));
    const installed = await installedView(options);
    const notices = html`${mode.isReadOnly && readOnlyNotice(mode, page)} ${page.formToken === '' && sessionNotice(page)}`;
    if (isRunning) {
      return html`${notices} ${jobSection} ${installed}
        <p class="hint">Another version can be chosen when this job has ended.</p>`;
    }
    const chosen = page.query.get('version') ?? '';
    const wizard = chosen !== '' && (await upgradeWizard(options, chosen, mayStart, page));
    return html`${notices} ${installed} ${wizard || jobSection} ${availableView(store, page)}
    ${rollbackView(store, mayStart, page)} ${wizard && jobSection}`;
  };
}

function sessionNotice({ here }: PageContext<unknown>): Html {
  return html`<p class="notice">
    This page was opened without a session. <a href="${here()}">Sign in</a> with this browser to start, cancel or
    follow a job.
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
