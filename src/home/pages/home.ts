// The home page: the health of the system in one sentence, and its state as cards. Only administrators see jobs,
// webhooks and the server.
import type { AuditWords } from '../../audit/pages/audit.ts';
import { listUsers } from '../../auth/user.ts';
import type { CatalogCache } from '../../catalog/catalog-cache.ts';
import { audienceOf, pathOfService } from '../../catalog/catalog.ts';
import { sampleCatalog } from '../../catalog/sample.ts';
import { linkButton } from '../../console/action.ts';
import { renderAgo } from '../../console/time.ts';
import { searchedIn } from '../../console/list.ts';
import { renderMissing } from '../../console/table.ts';
import { mayCall } from '../../lib/caller.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { currentMode } from '../../mode/mode.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { jobProgress } from '../../upgrades/jobs/job-service.ts';
import { type Job, isJobRunning, newestJob } from '../../upgrades/jobs/job-table.ts';
import { findJobToRepair } from '../../upgrades/jobs/job-to-repair.ts';
import { reasonNotToResume } from '../../upgrades/jobs/job.ts';
import {
  jobTitle,
  scheduleActions,
  startView,
  stateView,
  resumeButton,
  rollbackLink,
} from '../../upgrades/pages/job-parts.ts';
import { findRollbackTarget, mixedMark } from '../../upgrades/pages/overview.ts';
import { driftView, nothingToInstall, versionName, wizardHref } from '../../upgrades/pages/versions.ts';
import { deployment, installedVersions, originOf } from '../../upgrades/versions/deployment.ts';
import type { Drift, ReadDrift } from '../../upgrades/starting/drift.ts';
import { newestReachable } from '../../upgrades/versions/hops.ts';
import { formatVersion } from '../../upgrades/versions/manifest.ts';
import { webhookStats } from '../../webhooks/stats.ts';
import { healthMarks } from '../../webhooks/pages/parts.ts';
import { type WebhookHealth, healths, listWebhooks } from '../../webhooks/webhook.ts';
import type { InstalledVersion } from '../root.rest.ts';
import { type SystemHealth, type Severity, healthView, readSystemHealth, whileAvailable } from './health.ts';
import { showSearch } from './search.ts';

type HomeOptions = {
  readonly store: ReadableStore;
  readonly catalogCache: CatalogCache;
  readonly installed: () => InstalledVersion | undefined;
  readonly startedAt: number;
  readonly readDrift: ReadDrift;
  /** The title of an operation and the name of what it concerns, for the last changes. */
  readonly titleOf: AuditWords['titles']['titleOf'];
  readonly nameOf: AuditWords['names']['nameOf'];
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

type Card = {
  readonly title: string;
  readonly figure: Html;
  readonly severity?: Severity | undefined;
  readonly lines?: readonly (Html | false)[];
};

/** The parts with `data-live` update themselves while a script runs. */
export function showHome(options: HomeOptions): View<unknown> {
  return async (page) => {
    const query = searchedIn(page.query);
    if (query !== '') return showSearch(options, query, page);
    const isAdministrator = mayCall(page.caller, 'administrator');
    const { store } = options;
    const health = isAdministrator ? await whileAvailable(() => readSystemHealth(store, page)) : undefined;
    const recent = isAdministrator && (await recentView(options, page));
    const isKnown = store.unavailableSince() === undefined;
    const drift = isAdministrator ? await options.readDrift() : undefined;
    const version = cardView(versionCard(options, page, drift));
    const others = isAdministrator
      ? [jobCard(store, page), webhookCard(store, health, page), modeCard(options, page)]
      : [modeCard(options, page), catalogCard(options, page)];
    const shown = isKnown ? others : others.map(({ title }): Card => ({ title, figure: renderMissing() }));
    return html`<ul class="cards" id="cards" data-live="5">
        ${version} ${shown.map(cardView)}
      </ul>
      <div class="split">
        ${isAdministrator && healthView(isKnown ? health : undefined, isKnown && firstSteps(options, page))} ${recent}
      </div>`;
  };
}

const sampled = new Set(sampleCatalog.services.map(pathOfService));

/** What a new server lacks. Each step vanishes when it is done. */
function firstSteps({ store, catalogCache }: HomeOptions, page: PageContext<unknown>): Html | false {
  const { services } = catalogCache.listing('administrators');
  const steps = [
    !services.some((service) => !sampled.has(pathOfService(service))) &&
      linkButton(page, page.href('services', 'createService'), 'Publish a service', 'plain'),
    listWebhooks(store).length === 0 &&
      linkButton(page, page.href('services', 'webhooks', 'create'), 'Create a webhook', 'plain'),
    listUsers(store).length < 2 &&
      linkButton(page, page.href('security', 'users', 'add'), 'Add a user', 'plain'),
  ].flatMap((step) => step || []);
  return (
    steps.length > 0 &&
    html`<h2>First steps</h2>
      <ul class="plain">
        ${steps.map((step) => html`<li>${step}</li> `)}
      </ul>`
  );
}

const maxRecent = 8;

/** For administrators: also changes of one's own, made with a higher role, name what others may not see. */
async function recentView(
  { store, titleOf, nameOf }: HomeOptions,
  { href, now }: PageContext<unknown>,
): Promise<Html> {
  const filter = { outcome: 'success' } as const;
  const changes = await whileAvailable(async () => {
    const { entries } = await store.audit.page(filter, 0, 40);
    const chosen = entries.filter(({ operation }) => !operation.startsWith('tokens/')).slice(0, maxRecent);
    return Promise.all(chosen.map(async (entry) => ({ ...entry, name: await nameOf(entry.target ?? '') })));
  });
  return html`<section aria-labelledby="recent" id="changes" data-live="5">
    <h2 id="recent">Last changes</h2>
    ${
      changes === undefined || changes.length === 0
        ? html`<p class="none">${changes ? 'There are none yet.' : '–'}</p>`
        : html`<ol class="recent">
            ${changes.map(
              ({ at, user, operation, target, name }) =>
                html`<li>
                  ${renderAgo(at, now)} <strong>${titleOf(operation, user) ?? operation}</strong>
                  ${target !== null && name !== undefined && html`<a href="${href(...target.split('/'))}"><bdi>${name}</bdi></a>`} ${user !== null && html`by ${user}`}
                </li> `,
            )}
          </ol>`
    }
    <p><a href="${href('system', 'audit')}">Audit trail</a></p>
  </section>`;
}

function cardView({ title, figure, severity, lines = [] }: Card): Html {
  return html`<li class="${severity}">
    <h2>${title}</h2>
    <p class="figure">${figure}</p>
    ${lines.map((line) => line && html`<p>${line}</p>`)}
  </li> `;
}

function versionCard({ installed, store }: HomeOptions, page: PageContext<unknown>, drift?: Drift): Card {
  const { href, caller } = page;
  const present = installed();
  const isAdministrator = mayCall(caller, 'administrator');
  const newest = isAdministrator && newestReachable(store);
  // Otherwise the upgrades page begins with the job that runs, or that has to be repaired first.
  const canPlan = !isJobRunning(store) && findJobToRepair(store) === undefined;
  const former = isAdministrator && findRollbackTarget(store);
  const origin = isAdministrator ? originOf(store.read(deployment)) : undefined;
  return {
    title: 'Version',
    figure: html`${present?.version ?? 'Not known'} ${mixedMark(store)}`,
    lines: [
      present !== undefined && html`Build ${present.build}`,
      origin !== undefined && html`Derived from ${origin.from}`,
      driftView(drift, installedVersions(store.read(deployment)).at(-1), page),
      newest
        ? html`<a href="${canPlan ? wizardHref(page, newest.version) : href('system', 'upgrades')}"
            >${versionName(newest.version)} is available</a
          >`
        : newest === undefined && nothingToInstall(store, page),
      former ? rollbackLink(page, `Roll back to ${formatVersion(former)} …`, former) : false,
    ],
  };
}

function modeCard(options: HomeOptions, { href, caller, now }: PageContext<unknown>): Card {
  const { store, startedAt, inUse } = options;
  const { isReadOnly, reason, message } = currentMode(store, isJobRunning(store));
  const isAdministrator = mayCall(caller, 'administrator');
  return {
    title: 'Server',
    figure: isReadOnly ? html`Read-only` : html`<span class="claim">Accepts changes</span>`,
    severity: isReadOnly ? 'warn' : undefined,
    lines: [
      isReadOnly && message !== '' && html`${message}`,
      isAdministrator && reason !== 'upgrade' && html`<a href="${href('mode')}">Read-only mode</a>`,
      isAdministrator && html`Started ${renderAgo(startedAt, now)}`,
      isAdministrator && html`${stores[inUse.store]} ${executors[inUse.executor]}`,
    ],
  };
}

function catalogCard({ catalogCache }: HomeOptions, page: PageContext<unknown>): Card {
  const { href, caller } = page;
  const audience = audienceOf(caller);
  const { services, folders } = catalogCache.listing(audience);
  const prefix = audience === 'administrators' ? 'In' : 'Visible to you, in';
  return {
    title: 'Catalog',
    figure: html`<a href="${href('services')}">${formatCount(services.length, 'service')}</a>`,
    lines: [
      html`${prefix} the root and ${formatCount(folders.length, 'folder')}`,
      mayCall(caller, 'publisher') &&
        linkButton(page, href('services', 'createService'), 'Create a service', 'plain'),
    ],
  };
}

const jobSeverities: Readonly<Record<Job['state'], Severity>> = {
  scheduled: 'busy',
  in_progress: 'busy',
  success: 'good',
  failed: 'bad',
  cancelled: 'info',
};

function jobCard(store: ReadableStore, page: PageContext<unknown>): Card {
  const { href, now } = page;
  const job = store.read(newestJob);
  if (!job) {
    const versions = href('system', 'upgrades', 'available');
    const link = html`<a href="${versions}">Show available versions</a>`;
    return { title: 'Last job', figure: html`None yet`, lines: [link] };
  }
  const isRunning = job.state === 'in_progress';
  const { percent } = jobProgress(job, now);
  return {
    title: isRunning ? 'Running job' : 'Last job',
    severity: jobSeverities[job.state],
    figure: isRunning
      ? html`${percent} % <progress max="100" value="${percent}" aria-label="Running job">${percent} %</progress>`
      : stateView(job),
    lines: [
      html`<a href="${href('system', 'jobs', job.id)}">${jobTitle(job)}</a>`,
      isRunning
        ? html`${job.workloadsDone} of ${formatCount(job.workloads, 'deployment')}`
        : job.endedAt !== null && renderAgo(job.endedAt, now),
      job.startAt !== null && job.state === 'scheduled' && html`${startView(job.startAt, now)}`,
      scheduleActions(job, page),
      reasonNotToResume(store, job) === undefined && resumeButton(job, page, href('system', 'jobs', job.id)),
    ],
  };
}

function webhookCard(
  store: ReadableStore,
  health: SystemHealth | undefined,
  { href, now }: PageContext<unknown>,
): Card {
  if (!health) return { title: 'Webhooks', figure: renderMissing() };
  const all = health.webhooks;
  const stats = webhookStats(store, now);
  const { webhook_deliveries_pending: pending, webhook_oldest_pending_seconds: oldestPendingSeconds } = stats;
  const hasAge = pending > 0;
  const countOf = (name: WebhookHealth) => all.filter(({ health }) => health === name).length;
  const parts = healths.map((name) => ({ name, count: countOf(name), colour: healthMarks[name].colour }));
  return {
    title: 'Webhooks',
    severity:
      countOf('deactivated') > 0 ? 'bad' : countOf('failing') + countOf('behind') > 0 ? 'warn' : undefined,
    figure: html`<a href="${href('services', 'webhooks')}"
      >${all.length === 0 ? 'None yet' : formatCount(all.length, 'webhook')}</a
    >`,
    lines: [
      all.length > 0 && stackedBar(parts),
      pending === 0
        ? html`<span class="claim">No delivery is pending.</span>`
        : html`${formatCount(pending, 'delivery')} pending${
            hasAge && `, the oldest for ${formatDuration(oldestPendingSeconds * 1000)}`
          }`,
    ],
  };
}

/** Shares of a whole as one bar, with their numbers in words. */
function stackedBar(parts: readonly { name: string; count: number; colour: string }[]): Html {
  const shown = parts.filter(({ count }) => count > 0);
  const total = shown.reduce((sum, { count }) => sum + count, 0);
  let left = 0;
  const bars = shown.map(({ count, colour }) => {
    const [x, width] = [(100 * left) / total, (100 * count) / total];
    left += count;
    return html`<rect class="${colour}" x="${x}" width="${width}" height="1" />`;
  });
  return html`<svg class="stacked" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">${bars}</svg
    ><span class="claim">${shown.map(({ name, count }) => `${count} ${name}`).join(', ')}</span>`;
}
