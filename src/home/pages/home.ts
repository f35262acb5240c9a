// The home page: the health of the system in one sentence, and its state as cards. Only administrators see jobs,
// webhooks and the server.
import { listUsers } from '../../auth/user.ts';
import type { CatalogCache } from '../../catalog/catalog-cache.ts';
import { audienceOf } from '../../catalog/listing.ts';
import { actionButton } from '../../console/action.ts';
import { renderAgo, renderTime } from '../../console/json.ts';
import { mayCall } from '../../lib/caller.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { currentMode } from '../../mode/mode.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { jobProgress } from '../../upgrades/jobs/job-status.ts';
import { type Job, isJobRunning, newestJob } from '../../upgrades/jobs/job-table.ts';
import { reasonNotToStart } from '../../upgrades/jobs/job-to-repair.ts';
import { reasonNotToResume } from '../../upgrades/jobs/job.ts';
import { jobTitle, stateView, resumeLabel } from '../../upgrades/pages/job-parts.ts';
import { versionName } from '../../upgrades/pages/versions.ts';
import { deployment, rollbackTargets } from '../../upgrades/versions/deployment.ts';
import { newestReachable } from '../../upgrades/versions/hops.ts';
import { type Version, formatVersion } from '../../upgrades/versions/manifest.ts';
import { webhookStats } from '../../webhooks/stats.ts';
import { listWebhooks } from '../../webhooks/webhook.ts';
import type { InstalledVersion } from '../root.rest.ts';
import { type SystemHealth, type Severity, healthView, readSystemHealth } from './health.ts';

type HomeOptions = {
  readonly store: ReadableStore;
  readonly runtime: Runtime;
  readonly catalogCache: CatalogCache;
  readonly installed: () => InstalledVersion;
  readonly startedAt: number;
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
    const isAdministrator = mayCall(page.caller, 'administrator');
    const health = isAdministrator && (await readSystemHealth(options.store, page));
    const cards = health
      ? [
          jobCard(options.store, page),
          await webhookCard(options.store, health, page),
          versionCard(options, page),
          modeCard(options, page),
          catalogCard(options, page),
          userCard(options, page),
          serverCard(options, page),
        ]
      : [versionCard(options, page), modeCard(options, page), catalogCard(options, page)];
    return html`${health && healthView(health)}
      <ul class="cards" id="cards" data-live="10">
        ${cards.map(cardView)}
      </ul>`;
  };
}

function cardView({ title, figure, severity, lines = [] }: Card): Html {
  return html`<li class="${severity}">
    <h2>${title}</h2>
    <p class="figure">${figure}</p>
    ${lines.map((line) => line && html`<p>${line}</p>`)}
  </li> `;
}

function versionCard({ installed, store }: HomeOptions, { href, caller }: PageContext<unknown>): Card {
  const { version, build } = installed();
  const isAdministrator = mayCall(caller, 'administrator');
  const newest = isAdministrator && newestReachable(store);
  const former = isAdministrator && formerVersion(store);
  return {
    title: 'Version',
    figure: html`${version}`,
    lines: [
      html`Build ${build}`,
      newest
        ? html`<a href="${href('system', 'upgrades')}">${versionName(newest.version)} is available</a>`
        : newest === undefined && html`This is the newest version.`,
      former
        ? html`<a href="${href('system', 'upgrades')}?rollback=${encodeURIComponent(former.id)}#rollback"
            >Roll back to ${formatVersion(former)} …</a
          >`
        : false,
    ],
  };
}

/** The version to which a rollback of the newest patch returns, if a rollback can start now. */
function formerVersion(store: ReadableStore): Version | undefined {
  const blocked = reasonNotToStart(store, { operation: 'rollback', targetId: '' });
  return blocked === undefined && !isJobRunning(store)
    ? rollbackTargets(store.read(deployment))[0]
    : undefined;
}

function modeCard({ store }: HomeOptions, { href, caller }: PageContext<unknown>): Card {
  const { isReadOnly, reason, message } = currentMode(store, isJobRunning(store));
  return {
    title: 'Mode',
    figure: isReadOnly ? html`Read-only` : html`Changes are accepted`,
    severity: isReadOnly ? 'warn' : undefined,
    lines: [
      reason === 'administrator' && html`Set by an administrator.`,
      isReadOnly && message !== '' && html`${message}`,
      mayCall(caller, 'administrator') &&
        reason !== 'upgrade' &&
        html`<a href="${href('mode')}">Change the mode</a>`,
    ],
  };
}

function catalogCard({ catalogCache }: HomeOptions, { href, caller }: PageContext<unknown>): Card {
  const audience = audienceOf(caller);
  const { services, folders } = catalogCache.listing(audience);
  const prefix = audience === 'administrators' ? 'In' : 'Visible to you, in';
  return {
    title: 'Catalog',
    figure: html`<a href="${href('services')}">${formatCount(services.length, 'service')}</a>`,
    lines: [
      html`${prefix} the root and ${formatCount(folders.length, 'folder')}`,
      mayCall(caller, 'publisher') &&
        html`<a href="${href('services', 'createService')}">Create a service</a>`,
    ],
  };
}

function userCard({ store }: HomeOptions, { href }: PageContext<unknown>): Card {
  return {
    title: 'Users',
    figure: html`<a href="${href('security', 'users')}">${formatCount(listUsers(store).length, 'user')}</a>`,
    lines: [html`<a href="${href('security', 'users', 'add')}">Add a user</a>`],
  };
}

function serverCard({ startedAt, inUse }: HomeOptions, { now }: PageContext<unknown>): Card {
  return {
    title: 'Server',
    figure: html`Up for ${formatDuration(now - startedAt)}`,
    lines: [
      html`Since ${renderTime(startedAt)}`,
      html`${stores[inUse.store]}`,
      html`${executors[inUse.executor]}`,
    ],
  };
}

const jobSeverities: Readonly<Record<Job['state'], Severity>> = {
  in_progress: 'busy',
  success: 'good',
  failed: 'bad',
  cancelled: 'warn',
};

function jobCard(store: ReadableStore, page: PageContext<unknown>): Card {
  const { href, now } = page;
  const job = store.read(newestJob);
  const upgrades = (text: string, part = '') =>
    html`<a href="${href('system', 'upgrades')}${part}">${text}</a>`;
  if (!job) {
    return { title: 'Last job', figure: html`None yet`, lines: [upgrades('Show available versions')] };
  }
  const isRunning = job.state === 'in_progress';
  const { percent } = jobProgress(job, now);
  return {
    title: isRunning ? 'Running job' : 'Last job',
    severity: jobSeverities[job.state],
    figure: isRunning ? html`${percent} %` : stateView(job),
    lines: [
      html`${jobTitle(job)}`,
      isRunning
        ? html`${job.workloadsDone} of ${formatCount(job.workloads, 'deployment')}`
        : job.endedAt !== null && renderAgo(job.endedAt, now),
      job.state === 'failed'
        ? upgrades('Show why', '#failure')
        : upgrades(isRunning ? 'Show progress' : 'Show the job'),
      resumeButton(store, job, page),
    ],
  };
}

function resumeButton(
  store: ReadableStore,
  job: Job,
  { href, formToken }: PageContext<unknown>,
): Html | false {
  return (
    formToken !== '' &&
    reasonNotToResume(store, job) === undefined &&
    actionButton({
      label: resumeLabel(job),
      action: href('system', 'jobs', job.id, 'resume'),
      formToken,
      next: href('system', 'upgrades'),
      isPrimary: true,
    })
  );
}

async function webhookCard(
  store: ReadableStore,
  { failing, deactivated }: SystemHealth,
  { href, now }: PageContext<unknown>,
): Promise<Card> {
  const { pending, oldestPendingSeconds } = await webhookStats(store, now);
  const all = listWebhooks(store);
  const others = all.filter(({ active }) => !active).length - deactivated.length;
  const hasAge = pending > 0 && !isNaN(oldestPendingSeconds);
  const isFailing = failing.some(({ hasRecovered }) => !hasRecovered);
  return {
    title: 'Webhooks',
    severity: deactivated.length > 0 ? 'bad' : isFailing ? 'warn' : undefined,
    figure: html`<a href="${href('services', 'webhooks')}"
      >${all.length === 0 ? 'None yet' : formatCount(all.length, 'webhook')}</a
    >`,
    lines: [
      deactivated.length > 0 && html`${deactivated.length} deactivated after failures`,
      failing.length > 0 && html`${failing.length} with failures`,
      others > 0 && html`${others} inactive`,
      pending === 0
        ? html`No delivery is pending.`
        : html`${formatCount(pending, 'delivery')} pending${
            hasAge && `, the oldest for ${formatDuration(oldestPendingSeconds * 1000)}`
          }`,
      html`<a href="${href('services', 'webhooks', 'create')}">Create a webhook</a>`,
    ],
  };
}
