// The home page: the state of the deployment as cards. Only administrators see jobs, webhooks, store, executor and uptime.
import { mayCall } from '../../caller.ts';
import type { CatalogCache } from '../../catalog/catalog-cache.ts';
import { audienceOf } from '../../catalog/listing.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import type { ReadableStore } from '../../store/store.ts';
import { type Job, isJobRunning, newestJob } from '../../upgrades/job-table.ts';
import { webhookStats } from '../../webhooks/stats.ts';
import { listWebhooks } from '../../webhooks/webhook.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import type { Runtime } from '../../runtime.ts';
import { currentMode } from '../../mode/mode.ts';
import type { InstalledVersion } from '../root.rest.ts';

export type HomeOptions = {
  readonly store: ReadableStore;
  readonly runtime: Runtime;
  readonly catalogCache: CatalogCache;
  readonly installed: () => InstalledVersion;
  readonly startedAt: number;
  readonly inUse: { readonly store: keyof typeof stores; readonly executor: keyof typeof executors };
};

const stores = {
  memory: { name: 'In memory', meaning: 'Nothing survives a restart.' },
  postgres: { name: 'PostgreSQL', meaning: 'Data survives restarts and is shared by all processes.' },
};
const executors = {
  simulated: { name: 'Simulated', meaning: 'Jobs only wait; they change no real deployment.' },
  kubernetes: { name: 'Kubernetes', meaning: 'Jobs change the workloads of a namespace.' },
};

type Card = { readonly title: string; readonly figure: Html; readonly lines?: readonly (Html | false)[] };

export function showHome(options: HomeOptions): View<unknown> {
  return async (page) => {
    const cards = [versionCard(options), modeCard(options, page), catalogCard(options, page)];
    if (mayCall(page.caller, 'administrator')) cards.push(...(await cardsForAdministrators(options, page)));
    return html`<ul class="cards">
      ${cards.map(cardView)}
    </ul>`;
  };
}

function cardView({ title, figure, lines = [] }: Card): Html {
  return html`<li>
    <h2>${title}</h2>
    <p class="figure">${figure}</p>
    ${lines.map((line) => line && html`<p>${line}</p>`)}
  </li> `;
}

function versionCard({ installed }: HomeOptions): Card {
  const { version, build } = installed();
  return { title: 'Version', figure: html`${version}`, lines: [html`Full version ${version}.${build}`] };
}

function modeCard({ store }: HomeOptions, { href, caller }: PageContext<unknown>): Card {
  const { isReadOnly, reason, message } = currentMode(store, isJobRunning(store));
  const change = html`<a href="${href('mode', 'update')}">Change the mode</a>`;
  return {
    title: 'Mode',
    figure: isReadOnly
      ? html`<span class="state warn">Read-only</span>`
      : html`<span class="state good">Changes are accepted</span>`,
    lines: [
      reason === 'administrator' && html`Set by an administrator.`,
      isReadOnly && message !== '' && html`${message}`,
      mayCall(caller, 'administrator') && reason !== 'upgrade' && change,
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
    lines: [html`${prefix} the root and ${formatCount(folders.length, 'folder')}`],
  };
}

async function cardsForAdministrators(options: HomeOptions, page: PageContext<unknown>): Promise<Card[]> {
  const { store, runtime, startedAt, inUse } = options;
  const at = runtime.now();
  return [
    jobCard(store.read(newestJob), page),
    ...(await webhookCards(store, at, page)),
    componentCard('Store', stores[inUse.store]),
    componentCard('Executor', executors[inUse.executor]),
    {
      title: 'Uptime',
      figure: html`${formatDuration(at - startedAt)}`,
      lines: [html`Since ${renderTime(startedAt)}`],
    },
  ];
}

function componentCard(title: string, { name, meaning }: { name: string; meaning: string }): Card {
  return { title, figure: html`${name}`, lines: [html`${meaning}`] };
}

const outcomes: Readonly<Record<Exclude<Job['state'], 'in_progress'>, { style: string; label: string }>> = {
  success: { style: 'good', label: 'Succeeded' },
  failed: { style: 'bad', label: 'Failed' },
  cancelled: { style: 'warn', label: 'Cancelled' },
};

function jobCard(job: Job | null, { href }: PageContext<unknown>): Card {
  const upgrades = (text: string) => html`<a href="${href('system', 'upgrades')}">${text}</a>`;
  if (!job) {
    const title = 'Last job';
    return { title, figure: html`None yet`, lines: [upgrades('Show available versions')] };
  }
  const { state, operation, from, to, startedAt, endedAt, workloads, workloadsDone } = job;
  const what = html`${operation === 'upgrade' ? 'Upgrade' : 'Rollback'} from ${from} to ${to}`;
  if (state === 'in_progress') {
    return {
      title: 'Running job',
      figure: html`${workloadsDone} of ${formatCount(workloads, 'deployment')}`,
      lines: [what, html`Since ${renderTime(startedAt)}`, upgrades('Show progress')],
    };
  }
  const { style, label } = outcomes[state];
  return {
    title: 'Last job',
    figure: html`<span class="state ${style}">${label}</span>`,
    lines: [what, endedAt !== null && renderTime(endedAt), upgrades('Show messages')],
  };
}

async function webhookCards(
  store: ReadableStore,
  at: number,
  { href }: PageContext<unknown>,
): Promise<Card[]> {
  const { pending, oldestPendingSeconds, deactivated } = await webhookStats(store, at);
  const all = listWebhooks(store);
  const others = all.filter(({ active }) => !active).length - deactivated;
  const list = all.length === 0 ? 'No webhooks yet' : `Show ${formatCount(all.length, 'webhook')}`;
  return [
    {
      title: 'Pending deliveries',
      figure: html`${pending}`,
      lines: [
        pending > 0 &&
          !isNaN(oldestPendingSeconds) &&
          html`The oldest is ${formatDuration(oldestPendingSeconds * 1000)} old`,
      ],
    },
    {
      title: 'Deactivated webhooks',
      figure:
        deactivated > 0
          ? html`<span class="state bad">${deactivated} because of failures</span>`
          : html`None because of failures`,
      lines: [
        others > 0 && html`${others} inactive for other reasons`,
        html`<a href="${href('services', 'webhooks')}">${list}</a>`,
      ],
    },
  ];
}
