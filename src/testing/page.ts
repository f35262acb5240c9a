// The page at /control: the state, the clock, the failure rules and the newest requests. The script of the pages
// updates it.
import { users } from '../auth/user.ts';
import { folders, services } from '../catalog/catalog.ts';
import { Assets } from '../console/assets.ts';
import { renderTime } from '../console/time.ts';
import { type Page, renderPage } from '../console/layout.ts';
import { type Row, renderTable } from '../console/table.ts';
import { html, type Html } from '../lib/html.ts';
import { currentMode } from '../mode/mode.ts';
import type { Store } from '../store/store.ts';
import { isJobRunning, newestJob } from '../upgrades/jobs/job-table.ts';
import { deployment, newestInstalled } from '../upgrades/versions/deployment.ts';
import { webhooks } from '../webhooks/webhook.ts';
import type { JournalEntry, JournalMessage } from './control-client.ts';
import type { ControlledServer } from './controlled-server.ts';

const shownRequests = 25;

export function controlPage(server: ControlledServer): Page {
  const { options, app, clock, rules, journal } = server;
  const { linkBase } = app.urls;
  const assets = new Assets(options.assets, options.config.adminPath).hrefs(linkBase);
  const { now, frozen } = clock.state();
  const { requests, total } = journal.page({}, 0, shownRequests);
  const ruleRows = rules
    .list()
    .map(({ id, match, respond, times, hits }): Row => [
      id,
      html`<code>${JSON.stringify(match)}</code>`,
      html`<code>${JSON.stringify(respond)}</code>`,
      times === undefined ? 'always' : String(times),
      String(hits),
    ]);
  const content = html`<p class="lead">
      This server is controlled by tests: it can be reset, its clock can be moved, and rules can make requests fail.
    </p>
    <div id="control" data-live="1">
      <section aria-labelledby="state">
        <h2 id="state">State</h2>
        ${renderTable('State', ['Part', 'Now'], stateRows(server.store))}
      </section>
      <section aria-labelledby="clock">
        <h2 id="clock">Clock</h2>
        <p>
          ${renderTime(now)}
          (${now} ms), ${frozen ? 'frozen' : 'running'}
        </p>
      </section>
      <section aria-labelledby="rules">
        <h2 id="rules">Failure rules</h2>
        ${
          ruleRows.length === 0
            ? html`<p>There are none.</p>`
            : renderTable('Failure rules', ['Id', 'Match', 'Respond', 'Times', 'Hits'], ruleRows)
        }
      </section>
      <section aria-labelledby="requests">
        <h2 id="requests">Requests</h2>
        <p>The newest ${requests.length} of ${total}, with secrets masked.</p>
        ${requests.map(entryView)}
      </section>
    </div>`;
  return renderPage(
    {
      name: 'Steward',
      version: options.version,
      title: 'Test control',
      assets,
      homeHref: app.urls.homePath,
      now,
      navigation: [],
      crumbs: [{ name: 'control', href: `${linkBase}/control` }],
    },
    content,
  );
}

function stateRows(store: Store): Row[] {
  const { isReadOnly, message } = currentMode(store, isJobRunning(store));
  return [
    ['Installed version', newestInstalled(store.read(deployment)).id],
    ['Newest job', store.read(newestJob)?.state ?? 'none'],
    ['Mode', isReadOnly ? `read-only. ${message}` : 'read and write'],
    ['Folders', String(store.count(folders))],
    ['Services', String(store.count(services))],
    ['Webhooks', String(store.count(webhooks))],
    ['Pending deliveries', String(store.deliveries.pending().count)],
    ['Users', String(store.count(users))],
  ];
}

function entryView(entry: JournalEntry): Html {
  const { id, at, method, path, status, soapOperation, fault, faultElement, request, response } = entry;
  const cause = faultElement === null ? '' : ` (element ${faultElement})`;
  return html`<details id="request-${id}">
    <summary>
      <code>${status ?? '–'}</code> <code>${method} ${path}</code> ${soapOperation ?? ''}
      ${renderTime(at)}
    </summary>
    ${fault !== null && html`<p>${fault}${cause}</p>`} ${messageView('Request', request)}
    ${messageView('Response', response)}
  </details>`;
}

function messageView(title: string, { headers, body }: JournalMessage): Html {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`);
  return html`<h3>${title}</h3>
    <pre>${[...lines, '', body].join('\n')}</pre>`;
}
