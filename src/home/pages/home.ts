// The home page: what needs attention, the state of the system as facts in a row, and the last changes. Only
// administrators see problems, jobs, webhooks and changes.
import { type AuditWords, describeEntries } from '../../audit/pages/audit.ts';
import { listUsers } from '../../auth/user.ts';
import type { CatalogCache } from '../../catalog/catalog-cache.ts';
import { audienceOf, pathOfService } from '../../catalog/catalog.ts';
import { sampleCatalog } from '../../catalog/sample.ts';
import { linkButton } from '../../console/action.ts';
import { renderAgo } from '../../console/time.ts';
import { renderChart } from '../../console/chart.ts';
import { searchedIn } from '../../console/list.ts';
import { renderMissing } from '../../console/table.ts';
import { mayCall } from '../../lib/caller.ts';
import { formatCount, formatDuration, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { currentMode } from '../../mode/mode.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { jobProgress } from '../../upgrades/jobs/job-service.ts';
import { type Job, isJobRunning, isOpen, newestJob } from '../../upgrades/jobs/job-table.ts';
import { findJobToRepair } from '../../upgrades/jobs/job-to-repair.ts';
import { startView, stateView } from '../../upgrades/pages/job-parts.ts';
import { mixedMark } from '../../upgrades/pages/overview.ts';
import { driftView, nothingToInstall, versionName, wizardHref } from '../../upgrades/pages/versions.ts';
import { deployment, installedVersions, originOf } from '../../upgrades/versions/deployment.ts';
import type { Drift, ReadDrift } from '../../upgrades/starting/drift.ts';
import { newestReachable } from '../../upgrades/versions/hops.ts';
import { webhookStats } from '../../webhooks/stats.ts';
import { barsOf, deliveriesHref, sumOf } from '../../webhooks/pages/history.ts';
import { hourMs, hourOf } from '../../webhooks/queue/history.ts';
import { listWebhooks } from '../../webhooks/webhook.ts';
import type { InstalledVersion } from '../root.rest.ts';
import { type SystemHealth, type Severity, healthView, readSystemHealth, whileAvailable } from './health.ts';
import { showSearch } from './search.ts';

type HomeOptions = {
  readonly store: ReadableStore;
  readonly catalogCache: CatalogCache;
  readonly installed: () => InstalledVersion | undefined;
  readonly startedAt: number;
  readonly readDrift: ReadDrift;
  readonly words: AuditWords;
  readonly inUse: { readonly store: keyof typeof stores; readonly executor: keyof typeof executors };
};

const stores = {
  memory: 'Data is in memory and does not survive a restart.',
  postgres: 'Data is in PostgreSQL.',
};
const executors = {
  simulated: 'Jobs are simulated and change no deployment.',
  kubernetes: 'Jobs change the workloads of a Kubernetes namespace.',
};

/** A figure with its name, and smaller words beside it. */
type Fact = {
  readonly title: string;
  readonly figure: Html;
  readonly severity?: Severity | undefined;
  readonly lines?: readonly (Html | false)[];
};

/** Problems first, then the facts in a row, then the changes. The parts with `data-live` update themselves while a script runs. */
export function showHome(options: HomeOptions): View<unknown> {
  return async (page) => {
    const query = searchedIn(page.query);
    if (query !== '') return showSearch(options, query, page);
    const isAdministrator = mayCall(page.caller, 'administrator');
    const { store } = options;
    const health = isAdministrator ? await whileAvailable(() => readSystemHealth(store, page)) : undefined;
    const isKnown = store.unavailableSince() === undefined;
    const drift = isAdministrator ? await options.readDrift() : undefined;
    const version = factView(versionFact(options, page, drift));
    const others = isAdministrator
      ? [...(await jobFacts(store, page)), webhookFact(store, health, page)]
      : [];
    const facts = [...others, catalogFact(options, page), modeFact(options, page)];
    const shown = isKnown ? facts : facts.map(({ title }): Fact => ({ title, figure: renderMissing() }));
    return html`${isAdministrator && healthView(isKnown ? health : undefined)}
      ${isAdministrator && listWebhooks(store).length > 0 && (await deliveriesView(store, page))}
      <dl class="facts boxed" id="facts" data-live="5">${version} ${shown.map(factView)}</dl>
      ${isAdministrator && isKnown && firstSteps(options, page)} ${isAdministrator && (await recentView(options, page))}`;
  };
}

const sampled = new Set(sampleCatalog.services.map(pathOfService));

/** What a new server lacks. Each step vanishes when it is done. */
function firstSteps({ store, catalogCache }: HomeOptions, page: PageContext<unknown>): Html | false {
  const { services } = catalogCache.listing('administrators');
  const samples = services.filter((service) => sampled.has(pathOfService(service))).length;
  const steps = [
    samples === services.length && {
      link: linkButton(page, page.href('services', 'createService'), 'Publish a service', 'plain'),
      why: `SOAP clients and portals find it in the catalog${samples > 0 ? `, which has ${formatCount(samples, 'sample service')} now` : ''}.`,
    },
    listWebhooks(store).length === 0 && {
      link: linkButton(page, page.href('services', 'webhooks', 'create'), 'Create a webhook', 'plain'),
      why: 'A receiver of yours hears of changes of services and of upgrades.',
    },
    listUsers(store).length < 2 && {
      link: linkButton(page, page.href('security', 'users', 'add'), 'Add a user', 'plain'),
      why: 'The audit trail then says who changed what.',
    },
  ].flatMap((step) => step || []);
  return (
    steps.length > 0 &&
    html`<h2>First steps</h2>
      <ul class="cards">
        ${steps.map(
          ({ link, why }) =>
            html`<li>
              <p>${link}</p>
              <p class="hint">${why}</p>
            </li> `,
        )}
      </ul>`
  );
}

const shownHours = 24;
const maxBands = 20;

/** The deliveries of a day, with the jobs that ran meanwhile. */
async function deliveriesView(store: ReadableStore, page: PageContext<unknown>): Promise<Html> {
  const { now } = page;
  const to = hourOf(now) + hourMs;
  const from = to - shownHours * hourMs;
  const newest = store.read(newestJob);
  const chart = await whileAvailable(async () => {
    const history = await store.deliveries.history({ from, to: now });
    const bars = barsOf(history, { from, to: now }, 1).map(({ at, good, bad }) => ({ at, good, bad }));
    const earlier = newest ? (await store.jobs.page(newest.number, 0, maxBands)).jobs : [];
    const bands = [...(newest ? [newest] : []), ...earlier].flatMap(({ startedAt, endedAt }) =>
      startedAt !== null && (endedAt ?? now) > from ? [{ from: startedAt, to: endedAt ?? now }] : [],
    );
    const summary = html`${sumOf(bars)}${bands.length > 0 && html` <span class="hint">Blue: a job ran.</span>`}`;
    const hrefOf = deliveriesHref(page.href('services', 'webhooks', 'deliveries'));
    return renderChart({
      id: 'per-hour',
      title: 'Deliveries per hour',
      summary,
      bars,
      spanMs: hourMs,
      from,
      to,
      now,
      bands,
      hrefOf,
    });
  });
  return html`<div id="deliveries" data-live="30">${chart}</div>`;
}

const maxRecent = 8;

/** For administrators: also changes of one's own, made with a higher role, name what others may not see. */
async function recentView({ store, words }: HomeOptions, page: PageContext<unknown>): Promise<Html> {
  const { href, now } = page;
  const changes = await whileAvailable(async () => {
    const outcomes = ['success', 'failed'] as const;
    const pages = await Promise.all(outcomes.map((outcome) => store.audit.page({ outcome }, 0, 40)));
    const entries = pages
      .flatMap((found) => found.entries)
      .filter(({ operation }) => !operation.startsWith('tokens/'))
      .sort((one, other) => other.at - one.at)
      .slice(0, maxRecent);
    return [...(await describeEntries(entries, words, page))];
  });
  return html`<section aria-labelledby="recent" id="changes" data-live="5">
    <h2 id="recent">Last changes</h2>
    ${
      changes === undefined || changes.length === 0
        ? html`<p class="none">${changes ? 'There are none yet.' : '–'}</p>`
        : html`<ol class="recent">
            ${changes.map(
              ([{ at, user, outcome }, sentence]) =>
                html`<li class="${outcome === 'failed' && 'bad'}">${renderAgo(at, now)} ${user} ${sentence}</li> `,
            )}
          </ol>`
    }
    <p><a href="${href('system', 'audit')}">Audit trail</a></p>
  </section>`;
}

function factView({ title, figure, severity, lines = [] }: Fact): Html {
  return html`<div>
    <dt>${title}</dt>
    <dd class="${severity}">${figure} ${lines.map((line) => line && html`<span class="hint">${line}</span> `)}</dd>
  </div> `;
}

function versionFact({ installed, store }: HomeOptions, page: PageContext<unknown>, drift?: Drift): Fact {
  const { href, caller } = page;
  const present = installed();
  const isAdministrator = mayCall(caller, 'administrator');
  const newest = isAdministrator && newestReachable(store);
  const job = store.read(newestJob);
  // Otherwise the upgrades page begins with the job that runs, or that has to be repaired first.
  const canPlan = !(job && isOpen(job)) && findJobToRepair(store) === undefined;
  const origin = isAdministrator ? originOf(store.read(deployment)) : undefined;
  return {
    title: 'Version',
    figure: html`${present?.version ?? 'Not known'} ${mixedMark(store)}`,
    lines: [
      present !== undefined && html`build ${present.build}`,
      origin !== undefined && html`derived from ${origin.from}`,
      driftView(drift, installedVersions(store.read(deployment)).at(-1), page),
      newest
        ? html`<a href="${canPlan ? wizardHref(page, newest.version) : href('system', 'upgrades')}"
            >${versionName(newest.version)} is available</a
          >`
        : newest === undefined && nothingToInstall(store, page),
    ],
  };
}

function modeFact(options: HomeOptions, { href, caller, now }: PageContext<unknown>): Fact {
  const { store, startedAt, inUse } = options;
  const { isReadOnly, reason } = currentMode(store, isJobRunning(store));
  const isAdministrator = mayCall(caller, 'administrator');
  const figure = isReadOnly ? html`Read-only` : html`<span class="claim">Accepts changes</span>`;
  const hasPage = isAdministrator && reason !== 'upgrade';
  return {
    title: 'Server',
    figure: hasPage ? html`<a href="${href('mode')}">${figure}</a>` : figure,
    severity: isReadOnly ? 'warn' : undefined,
    lines: [
      isAdministrator &&
        html`<span title="${stores[inUse.store]} ${executors[inUse.executor]}">started ${renderAgo(startedAt, now)}</span>`,
    ],
  };
}

function catalogFact({ catalogCache }: HomeOptions, { href, caller }: PageContext<unknown>): Fact {
  const audience = audienceOf(caller);
  const { services, folders } = catalogCache.listing(audience);
  const visible = audience === 'administrators' ? '' : ' visible to you';
  return {
    title: 'Catalog',
    figure: html`<a href="${href('services')}">${formatCount(services.length, 'service')}</a>`,
    lines: [html`in ${formatCount(folders.length, 'folder')}${visible}`],
  };
}

/** The last job that has begun, and the one that runs or is scheduled. */
async function jobFacts(store: ReadableStore, page: PageContext<unknown>): Promise<Fact[]> {
  const { href, now } = page;
  const newest = store.read(newestJob);
  const isNext = newest?.state === 'scheduled';
  const earlier =
    newest && isNext ? await whileAvailable(() => store.jobs.page(newest.number, 0, 1)) : undefined;
  const last = isNext ? earlier?.jobs[0] : newest;
  const link = ({ id, to }: Job) => html`<a href="${href('system', 'jobs', id)}">${to}</a>`;
  const facts: Fact[] = [{ title: 'Last job', figure: html`none` }];
  if (last) {
    const isRunning = last.state === 'in_progress';
    const ended = last.endedAt !== null && renderAgo(last.endedAt, now);
    const figure = html`${link(last)} ${isRunning ? html`${jobProgress(last, now).percent} %` : stateView(last)}`;
    const lines = [
      last.failedAt !== null && last.state !== 'failed' && html`after a failure`,
      ended && html`${ended}`,
    ];
    facts[0] = { title: isRunning ? 'Running job' : 'Last job', figure, lines };
  }
  if (newest && isNext && newest.startAt !== null)
    facts.push({ title: 'Next job', figure: link(newest), lines: [startView(newest.startAt, now)] });
  return facts;
}

function webhookFact(
  store: ReadableStore,
  health: SystemHealth | undefined,
  { href, now }: PageContext<unknown>,
): Fact {
  if (!health) return { title: 'Webhooks', figure: renderMissing() };
  const all = health.webhooks;
  const stats = webhookStats(store, now);
  const { webhook_deliveries_pending: pending, webhook_oldest_pending_seconds: oldestPendingSeconds } = stats;
  const ok = all.filter((one) => one.health === 'ok').length;
  return {
    title: 'Webhooks',
    figure: html`<a href="${href('services', 'webhooks')}">${all.length === 0 ? 'none yet' : formatNumber(all.length)}</a>`,
    lines: [
      all.length > 0 && html`<span class="claim">${formatNumber(ok)} ok</span>`,
      pending > 0 &&
        html`${formatCount(pending, 'delivery')} pending, the oldest for ${formatDuration(oldestPendingSeconds * 1000)}`,
    ],
  };
}
