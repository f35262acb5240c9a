// The page at /control: reset, clock, failure rules and the journal. Its forms are sent to the page itself, so that it
// works without a script; the script of the pages updates the rest.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { users } from '../auth/user.ts';
import { folders, services } from '../catalog/catalog.ts';
import { actionButton } from '../console/action.ts';
import { Assets } from '../console/assets.ts';
import { operationForm, renderProblems } from '../console/form.ts';
import { sentenceOf } from '../console/labels.ts';
import { type Layout, type Page, renderPage, sendHtml } from '../console/layout.ts';
import { pageRange, renderEmpty, renderEntries, renderListPage, selectEntries } from '../console/list.ts';
import { clearNotice, readNotice, writeNotice } from '../console/notice.ts';
import { renderFacts } from '../console/table.ts';
import { renderAgo, renderTime } from '../console/time.ts';
import { cookieOf } from '../http/credentials.ts';
import { asServiceError, notFound, toErrorResponse } from '../http/errors.ts';
import { type ServiceError, invalidField } from '../lib/errors.ts';
import { formatCount, formatNumber } from '../lib/format.ts';
import { type Html, html } from '../lib/html.ts';
import { truncate } from '../lib/text.ts';
import { currentMode } from '../mode/mode.ts';
import { describeField } from '../rest/fields.ts';
import { noticeCookie } from '../rest/request.ts';
import type { FormError } from '../rest/view.ts';
import type { Store } from '../store/store.ts';
import { isJobRunning, newestJob } from '../upgrades/jobs/job-table.ts';
import { deployment, installedVersions } from '../upgrades/versions/deployment.ts';
import { webhooks } from '../webhooks/webhook.ts';
import type { JournalEntry, JournalMessage } from './control-client.ts';
import type { ControlledServer } from './controlled-server.ts';
import { maxAdvanceMs, parseInput } from './input.ts';
import { ruleFields, ruleSchemaFor } from './rule.ts';
import { dayMs } from '../lib/runtime.ts';

// With these the page has at most 100 KB, whatever the rules and requests contain.
const shownRules = 10;
const shownRequests = 25;
const maxCellLength = 120;
const maxMessageLength = 6000;
const maxFormBytes = 64 * 1024;

/** Without this policy, browsers would not name the origin of the page in its forms. */
const pageHeaders = { 'referrer-policy': 'same-origin' };

export function addPage(control: FastifyInstance, server: ControlledServer): void {
  const { urls } = server.app;
  const queryOf = ({ url }: FastifyRequest) => new URL(url, 'http://control').searchParams;

  control.get('/control', (request, reply) => {
    const notice = readNotice(cookieOf(request, noticeCookie));
    if (notice) void reply.header('set-cookie', clearNotice(urls.isHttps));
    return sendHtml(reply, 200, controlPage(server, { query: queryOf(request), notice }), pageHeaders);
  });
  control.post<{ Body: unknown }>('/control', { bodyLimit: maxFormBytes }, async (request, reply) => {
    const form = pageForm(queryOf(request).get('do'));
    const entered = new URLSearchParams(Buffer.isBuffer(request.body) ? request.body.toString() : '');
    try {
      const text = await runForm(server, form, entered);
      void reply.header('set-cookie', writeNotice({ text }, urls.isHttps));
      return await reply.redirect(`${urls.linkBase}/control`, 303);
    } catch (thrown) {
      const error = asServiceError(thrown);
      if (!error) throw thrown;
      const refused = { form, entered, error: formErrorOf(error) };
      const page = controlPage(server, { query: new URLSearchParams(), refused });
      return sendHtml(reply, toErrorResponse(error).status, page, pageHeaders);
    }
  });
}

type PageRequest = {
  readonly query: URLSearchParams;
  readonly notice?: Layout['notice'];
  /** A form that was refused. */
  readonly refused?: {
    readonly form: PageForm;
    readonly entered: URLSearchParams;
    readonly error: FormError;
  };
};

function controlPage(server: ControlledServer, request: PageRequest): Page {
  const { clock } = server;
  const id = request.query.get('request');
  const entry = id === null ? undefined : server.journal.find(id);
  if (id !== null && !entry) throw notFound();
  if (entry) return renderPage(layoutOf(server, `Request ${entry.id}`, request), entryView(entry));
  const error = request.refused?.form === 'rule' ? undefined : request.refused?.error;
  const { frozen } = clock.state();
  const content = html`${error && renderProblems(error)}
    <section aria-labelledby="clock">
      <h2 id="clock">Clock</h2>
      <div class="toolbar">
        <div id="clock-state" class="chips" data-live="1">
          ${renderTime(clock.now())} ${frozen && html`<span class="state warn">Frozen</span>`}
          ${button(server, frozen ? 'release' : 'freeze', frozen ? 'Release' : 'Freeze')}
        </div>
        ${advanceForm(server, request)}
      </div>
    </section>
    <div class="split side">
      <div>
        <section aria-labelledby="rules">
          <h2 id="rules">Failure rules</h2>
          <div id="rule-list" data-live="1">${rulesView(server, request)}</div>
          ${ruleForm(server, request)}
        </section>
        <section aria-labelledby="requests">
          <h2 id="requests">Requests</h2>
          <div id="request-list" data-live="1">${journalView(server, request)}</div>
        </section>
      </div>
      <div>
        <section aria-labelledby="state">
          <h2 id="state">State</h2>
          <div id="state-facts" data-live="1">${renderFacts(stateFacts(server.store))}</div>
          ${actionButton({ ...actionOf(server, 'reset', 'Reset'), isDestructive: true })}
          <p class="hint">Data, clock, rules and journal return to the state after the start.</p>
        </section>
      </div>
    </div>`;
  return renderPage(layoutOf(server, 'Test control', request), content);
}

function layoutOf({ options, app, clock }: ControlledServer, title: string, request: PageRequest): Layout {
  const { linkBase, homePath } = app.urls;
  return {
    name: 'Steward',
    version: options.version,
    title,
    isError: request.refused !== undefined,
    assets: new Assets(options.assets, options.config.ADMIN_PATH).hrefs(linkBase),
    homeHref: homePath,
    now: clock.now(),
    navigation: [],
    crumbs: [
      { name: 'Test control', href: `${linkBase}/control` },
      ...(title === 'Test control' ? [] : [{ name: title }]),
    ],
    notice: request.notice,
  };
}

const addressOf = ({ app }: ControlledServer, form: PageForm) => `${app.urls.linkBase}/control?do=${form}`;

/** Requests of other sites are refused by their origin, so the forms need no token. */
function actionOf(server: ControlledServer, form: PageForm, label: string, fields = {}) {
  return { action: addressOf(server, form), label, formToken: '', next: '', fields };
}

function button(...given: Parameters<typeof actionOf>): Html {
  return actionButton(actionOf(...given));
}

function advanceForm(server: ControlledServer, { refused }: PageRequest): Html {
  const entered = refused?.form === 'advance' ? refused.entered : new URLSearchParams();
  const chosen = entered.get('unit') ?? 'hours';
  return html`<form method="post" action="${addressOf(server, 'advance')}">
    <label class="unseen" for="amount">Advance by</label>
    <input id="amount" name="amount" inputmode="numeric" required size="6" value="${entered.get('amount') ?? '1'}" />
    <label class="unseen" for="unit">Unit</label>
    <select id="unit" name="unit">
      ${Object.keys(units).map((unit) => html`<option ${unit === chosen && 'selected'}>${unit}</option>`)}
    </select>
    <button>Advance</button>
  </form>`;
}

function rulesView(server: ControlledServer, { query }: PageRequest): Html {
  const rules = server.rules.list();
  const size = { usual: shownRules, most: shownRules, place: 'rules' };
  const page = { query, here: () => '' };
  return html`${renderEntries(page, selectEntries(rules, page, size), {
    noun: 'rule',
    label: 'Failure rules',
    idOf: ({ id }) => `rule-${id}`,
    empty: renderEmpty('No rule makes anything fail.'),
    columns: [
      {
        label: 'Rule',
        cell: ({ match, respond }) => `${partsOf(match) || 'every request'} → ${partsOf(respond)}`,
      },
      {
        label: 'Hits',
        cell: ({ hits, times }) => {
          if (hits === 0) return html`<span class="state warn">not used</span>`;
          return times === undefined ? formatNumber(hits) : `${formatNumber(hits)} of ${formatNumber(times)}`;
        },
      },
      { label: 'Actions', cell: ({ id }) => button(server, 'remove', 'Delete', { id }) },
    ],
  })}
    ${rules.length > 1 && html`<p>${button(server, 'remove', 'Delete all rules')}</p>`}`;
}

/** `{ route: '/admin', method: 'GET' }` → `route /admin, method GET`. */
function partsOf(parts: object): string {
  return truncate(
    Object.entries(parts)
      .map(([name, value]) => `${name} ${value}`)
      .join(', '),
    maxCellLength,
  );
}

function ruleForm(server: ControlledServer, { refused }: PageRequest): Html {
  const own = refused?.form === 'rule' ? refused : undefined;
  const routes = [...new Set(server.known.routes.map(({ template }) => template))].sort();
  return html`<details class="try" ${own && 'open'}>
    <summary>Add a rule</summary>
    ${operationForm(layoutOf(server, '', { query: new URLSearchParams() }), addRule, {
      action: addressOf(server, 'rule'),
      entered: Object.fromEntries(own?.entered ?? []),
      suggestions: { route: routes },
      error: own?.error,
    })}
  </details>`;
}

function journalView(server: ControlledServer, { query }: PageRequest): Html {
  const range = pageRange(query, { usual: shownRequests, most: shownRequests });
  const { requests, total } = server.journal.page({}, range.start, range.num);
  const list = { shown: requests, total, range, keep: {} };
  return renderListPage({ query, here: () => '' }, list, {
    noun: 'request',
    count: `${formatCount(total, 'request')}, newest first, with secrets masked`,
    actions: button(server, 'clear', 'Clear'),
    idOf: ({ id }) => `request-${id}`,
    empty: renderEmpty('No program has sent a request yet.'),
    columns: [
      {
        label: 'Request',
        cell: ({ id, method, path, soapOperation, fault }) =>
          html`<a href="?request=${id}">${method} ${truncate(path, maxCellLength)}</a>
            <span class="hint">${truncate([soapOperation, fault].filter(Boolean).join(': '), maxCellLength)}</span>`,
      },
      { label: 'Status', cell: ({ status }) => statusView(status) },
      { label: 'Time', cell: ({ at }) => renderAgo(at, server.clock.now()) },
    ],
  });
}

function statusView(status: number | null): Html {
  const tone = status === null || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good';
  return html`<span class="state ${tone}">${status ?? 'no answer'}</span>`;
}

function entryView(entry: JournalEntry): Html {
  const { at, method, path, route, status, soapOperation, fault, faultElement, request, response } = entry;
  return html`${renderFacts([
    ['Request', html`<code>${method} ${truncate(path, maxCellLength)}</code>`],
    ['Status', statusView(status)],
    ['Time', renderTime(at)],
    ['Route', html`<code>${route ?? 'none'}</code>`],
    ...Object.entries({ 'SOAP operation': soapOperation, Fault: fault, Element: faultElement }).flatMap(
      ([name, text]): [string, string][] => (text === null ? [] : [[name, truncate(text, maxCellLength)]]),
    ),
  ])}
    <div class="split even">${messageView('Request', request)} ${messageView('Response', response)}</div>`;
}

function messageView(title: string, { headers, body }: JournalMessage): Html {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`);
  const text = [...lines, '', body].join('\n');
  return html`<section>
    <h2>${title}</h2>
    <pre tabindex="0">${text.slice(0, maxMessageLength)}</pre>
    ${
      text.length > maxMessageLength &&
      html`<p class="hint">The first ${formatNumber(maxMessageLength)} of ${formatNumber(text.length)} characters.
        <code>/control/requests</code> has all of them.</p>`
    }
  </section>`;
}

function stateFacts(store: Store): [string, string][] {
  const { isReadOnly, message } = currentMode(store, isJobRunning(store));
  return [
    ['Installed version', installedVersions(store.read(deployment)).at(-1)?.id ?? 'not known'],
    ['Newest job', store.read(newestJob)?.state ?? 'none'],
    ['Mode', isReadOnly ? `read-only. ${message}` : 'read and write'],
    ['Folders', formatNumber(store.count(folders))],
    ['Services', formatNumber(store.count(services))],
    ['Webhooks', formatNumber(store.count(webhooks))],
    ['Pending deliveries', formatNumber(store.deliveries.pending().count)],
    ['Users', formatNumber(store.count(users))],
  ];
}

/** What each form of the page does. */
const forms = ['reset', 'freeze', 'release', 'advance', 'rule', 'remove', 'clear'] as const;

type PageForm = (typeof forms)[number];

const units: Readonly<Record<string, number>> = {
  seconds: 1000,
  minutes: 60_000,
  hours: 3_600_000,
  days: dayMs,
};

/** A form has fields for texts and numbers. */
const { headers: _headers, ...respondFields } = ruleFields.respond;

const addRule = {
  title: 'Add rule',
  access: 'anyone',
  effect: 'reads',
  whileReadOnly: 'allowed',
  isDestructive: false,
  fields: { ...ruleFields.match, ...respondFields, times: ruleFields.times },
} as const;

function pageForm(name: string | null): PageForm {
  const form = forms.find((one) => one === name);
  if (!form) throw invalidField('do', `must be one of ${forms.join(', ')}.`);
  return form;
}

/** Returns what the page then says. */
async function runForm(server: ControlledServer, form: PageForm, given: URLSearchParams): Promise<string> {
  const { clock, rules, journal } = server;
  switch (form) {
    case 'reset':
      await server.reset();
      return 'The server is in the state after its start.';
    case 'freeze':
    case 'release':
      clock.setFrozen(form === 'freeze');
      return form === 'freeze' ? 'The clock is frozen.' : 'The clock runs.';
    case 'advance': {
      const amount = given.get('amount') ?? '';
      const unit = given.get('unit') ?? '';
      const ms = /^\d{1,9}$/.test(amount) ? Number(amount) * (units[unit] ?? NaN) : NaN;
      if (!(ms <= maxAdvanceMs))
        throw invalidField(
          'amount',
          `must be a number of ${Object.keys(units).join(', ')}, at most ten years.`,
        );
      await server.advanceTo(clock.now() + ms);
      return `The clock has advanced by ${formatNumber(Number(amount))} ${unit}.`;
    }
    case 'rule': {
      const schema = ruleSchemaFor(() => server.known);
      const { note = '' } = rules.add(parseInput(schema, ruleOf(given)));
      return `The rule is active. ${note}`.trim();
    }
    case 'remove': {
      const id = given.get('id');
      if (id === null) rules.clear();
      else rules.remove(id);
      return id === null ? 'The rules are deleted.' : 'The rule is deleted.';
    }
    case 'clear':
      journal.clear();
      return 'The journal is empty.';
  }
}

/** The rule that a form describes. What is blank is absent. */
function ruleOf(given: URLSearchParams): object {
  const valuesOf = (fields: Readonly<Record<string, Parameters<typeof describeField>[0]>>) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, field]) => {
        const text = (given.get(name) ?? '').trim();
        const { type } = describeField(field).schema;
        const value = type === 'integer' ? Number(text) : type === 'boolean' ? text === 'true' : text;
        return text === '' ? [] : [[name, value]];
      }),
    );
  const { match, times } = ruleFields;
  return { match: valuesOf(match), respond: valuesOf(respondFields), ...valuesOf({ times }) };
}

/** What the page shows of a refusal. A problem with `match.route` is one with the field `route`. */
function formErrorOf({ message, problems }: ServiceError): FormError {
  const own = problems.map(({ field = '', message: text }) => ({
    field: field.replace(/^.*\./, ''),
    message: text,
  }));
  return { message, details: own.map((problem) => sentenceOf(problem, addRule.fields)), problems: own };
}
