// The home page: how the deployment is doing, at a glance; administrators see all of it, others what they may use.
import { mayCall } from '../../caller.ts';
import type { CatalogCache } from '../../catalog/catalog-cache.ts';
import { audienceOf } from '../../catalog/listing.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import type { Store } from '../../store/store.ts';
import { type Job, isJobRunning, newestJob } from '../../upgrades/job-table.ts';
import { webhookStats } from '../../webhooks/stats.ts';
import { listWebhooks } from '../../webhooks/webhook.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import type { Runtime } from '../../runtime.ts';
import { currentMode } from '../../mode/mode.ts';
import type { InstalledVersion } from '../root.rest.ts';

export type HomeOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly catalogCache: CatalogCache;
  readonly installed: () => InstalledVersion;
  readonly startedAt: number;
  readonly inUse: { readonly store: keyof typeof stores; readonly executor: keyof typeof executors };
};

/** What there is to choose from, and what follows from it. */
const stores = {
  memory: { name: 'In memory', meaning: 'Nothing survives a restart.' },
  postgres: { name: 'PostgreSQL', meaning: 'What is acknowledged is kept, and shared by all processes.' },
};
const executors = {
  simulated: { name: 'Simulated', meaning: 'Jobs take their time but change no real deployment.' },
  kubernetes: { name: 'Kubernetes', meaning: 'Jobs change the workloads of a namespace.' },
};

type Card = { readonly title: string; readonly figure: Html; readonly lines?: readonly (Html | false)[] };

export function showHome(options: HomeOptions): View<unknown> {
  return async (shown) => {
    const cards = [versionCard(options), modeCard(options, shown), catalogCard(options, shown)];
    if (mayCall(shown.caller, 'administrator')) cards.push(...(await cardsForAdministrators(options, shown)));
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
  return { title: 'Version', figure: html`${version}`, lines: [html`In full ${version}.${build}`] };
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
  const seen = audience === 'administrators' ? 'At' : 'That you may see, at';
  return {
    title: 'Catalog',
    figure: html`<a href="${href('services')}">${formatCount(services.length, 'service')}</a>`,
    lines: [html`${seen} the root and in ${formatCount(folders.length, 'folder')}`],
  };
}

async function cardsForAdministrators(options: HomeOptions, shown: PageContext<unknown>): Promise<Card[]> {
  const { store, runtime, startedAt, inUse } = options;
  const at = runtime.now();
  return [
    jobCard(newestJob(store), shown),
    ...(await webhookCards(store, at, shown)),
    choiceCard('Store', stores[inUse.store]),
    choiceCard('Executor', executors[inUse.executor]),
    {
      title: 'Up for',
      figure: html`${formatDuration(at - startedAt)}`,
      lines: [html`Since ${renderTime(startedAt)}`],
    },
  ];
}

function choiceCard(title: string, { name, meaning }: { name: string; meaning: string }): Card {
  return { title, figure: html`${name}`, lines: [html`${meaning}`] };
}

const endOf: Readonly<Record<Exclude<Job['state'], 'in_progress'>, { look: string; word: string }>> = {
  success: { look: 'good', word: 'Succeeded' },
  failed: { look: 'bad', word: 'Failed' },
  cancelled: { look: 'warn', word: 'Cancelled' },
};

function jobCard(job: Job | undefined, { href }: PageContext<unknown>): Card {
  const upgrades = (text: string) => html`<a href="${href('system', 'upgrades')}">${text}</a>`;
  if (!job) {
    const title = 'Last job';
    return { title, figure: html`None yet`, lines: [upgrades('See what can be installed')] };
  }
  const { state, operation, from, to, startedAt, endedAt, workloads, workloadsDone } = job;
  const what = html`${operation === 'upgrade' ? 'Upgrade' : 'Rollback'} from ${from} to ${to}`;
  if (state === 'in_progress') {
    return {
      title: 'Running job',
      figure: html`${workloadsDone} of ${formatCount(workloads, 'deployment')}`,
      lines: [what, html`Since ${renderTime(startedAt)}`, upgrades('Watch it')],
    };
  }
  const { look, word } = endOf[state];
  return {
    title: 'Last job',
    figure: html`<span class="state ${look}">${word}</span>`,
    lines: [what, endedAt !== null && renderTime(endedAt), upgrades('See its messages')],
  };
}

async function webhookCards(store: Store, at: number, { href }: PageContext<unknown>): Promise<Card[]> {
  const { pending, oldestPendingSeconds, deactivated } = await webhookStats(store, at);
  const all = listWebhooks(store);
  const others = all.filter(({ active }) => !active).length - deactivated;
  const list =
    all.length === 0 ? 'There are no webhooks yet' : `See the ${formatCount(all.length, 'webhook')}`;
  return [
    {
      title: 'Pending deliveries',
      figure: html`${pending}`,
      lines: [
        pending > 0 &&
          !isNaN(oldestPendingSeconds) &&
          html`The oldest for ${formatDuration(oldestPendingSeconds * 1000)}`,
      ],
    },
    {
      title: 'Deactivated webhooks',
      figure:
        deactivated > 0
          ? html`<span class="state bad">${deactivated} for failures</span>`
          : html`None for failures`,
      lines: [
        others > 0 && html`${others} otherwise not active`,
        html`<a href="${href('services', 'webhooks')}">${list}</a>`,
      ],
    },
  ];
}
