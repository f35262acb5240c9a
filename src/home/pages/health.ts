// The health of the system in one sentence: what needs attention, why, and where to act on it.
import { isUnavailable } from '../../lib/errors.ts';
import { formatCount } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { jobProgress } from '../../upgrades/jobs/job-status.ts';
import { type Job, newestJob } from '../../upgrades/jobs/job-table.ts';
import { findJobToRepair } from '../../upgrades/jobs/job-to-repair.ts';
import { versionName } from '../../upgrades/pages/versions.ts';
import { newestReachable } from '../../upgrades/versions/hops.ts';
import { webhookSettings } from '../../webhooks/settings.ts';
import { type Webhook, listWebhooks, webhookToJson } from '../../webhooks/webhook.ts';

/** `busy`: a job is running. */
export type Severity = 'good' | 'info' | 'busy' | 'warn' | 'bad';

/** A reason, as a sentence with a link. */
type Finding = { readonly severity: Severity; readonly text: string; readonly href: string };

/** A webhook with failures that has not been deactivated yet, and how many more failures deactivate it. */
type FailingWebhook = {
  readonly webhook: Webhook;
  readonly left: number;
  /** Whether its newest delivery has succeeded, and its failures are fewer than half of those that deactivate it. */
  readonly hasRecovered: boolean;
};

export type SystemHealth = {
  readonly findings: readonly Finding[];
  readonly failing: readonly FailingWebhook[];
  readonly deactivated: readonly Webhook[];
};

const maxListed = 5;

export async function readSystemHealth(
  store: ReadableStore,
  { href, now }: PageContext<unknown>,
): Promise<SystemHealth> {
  const failing = await findFailingWebhooks(store, now);
  const deactivated = listWebhooks(store).filter(
    ({ active, deactivatedBy }) => !active && deactivatedBy === 'failures',
  );
  const webhookHref = ({ id }: Webhook) => href('services', 'webhooks', id);
  const findings: Finding[] = [
    ...store.problems().map((text): Finding => ({ severity: 'bad', text: `${text}.`, href: href() })),
    ...findJob(store.read(newestJob), now, href),
    ...deactivated.slice(0, maxListed).map((webhook): Finding => ({
      severity: 'bad',
      text: `Webhook ${webhook.name} was deactivated after too many failures.`,
      href: webhookHref(webhook),
    })),
    ...failing.slice(0, maxListed).map(({ webhook, left, hasRecovered }): Finding => ({
      severity: hasRecovered ? 'info' : 'warn',
      text: hasRecovered
        ? `Webhook ${webhook.name} works again. ${formatCount(left, 'more failure')} would deactivate it.`
        : `Webhook ${webhook.name} will be deactivated after ${formatCount(left, 'more failure')}.`,
      href: webhookHref(webhook),
    })),
    ...findUpdate(store, href),
  ];
  return { findings, failing, deactivated };
}

function findJob(job: Job | null, now: number, href: PageContext<unknown>['href']): Finding[] {
  if (!job || (job.state !== 'in_progress' && job.state !== 'failed')) return [];
  const what = job.operation === 'upgrade' ? 'upgrade' : 'rollback';
  const page = href('system', 'upgrades');
  if (job.state === 'failed') {
    const text = `The ${what} to ${job.to} has failed. ${job.reason ?? ''}`;
    return [{ severity: 'bad', text, href: `${page}#failure` }];
  }
  const { percent } = jobProgress(job, now);
  return [{ severity: 'busy', text: `The ${what} to ${job.to} is running: ${percent} %.`, href: page }];
}

/** Empty while the database is unavailable, so that the page still shows the rest. */
async function findFailingWebhooks(store: ReadableStore, at: number): Promise<FailingWebhook[]> {
  try {
    return await readFailingWebhooks(store, at);
  } catch (error) {
    if (isUnavailable(error)) return [];
    throw error;
  }
}

/** The webhooks that are nearest to their deactivation come first. */
async function readFailingWebhooks(store: ReadableStore, at: number): Promise<FailingWebhook[]> {
  const settings = store.read(webhookSettings);
  const windows = await store.deliveries.failureWindows();
  const found = listWebhooks(store)
    .filter(({ active }) => active)
    .map((webhook) => {
      const { failures, health } = webhookToJson(webhook, windows.get(webhook.id) ?? null, settings, at);
      const left = Math.max(1, settings.numberOfFailures - failures.count);
      return { webhook, count: failures.count, left, hasRecovered: false, isFailing: health === 'failing' };
    })
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.left - b.left);
  // The page shows no more than these.
  for (const one of found.slice(0, maxListed))
    if (!one.isFailing) one.hasRecovered = await hasSucceeded(store, one.webhook);
  return found;
}

async function hasSucceeded(store: ReadableStore, { id }: Webhook): Promise<boolean> {
  const { deliveries } = await store.deliveries.page({ webhookId: id }, 0, 1);
  return deliveries[0]?.state === 'delivered';
}

function findUpdate(store: ReadableStore, href: PageContext<unknown>['href']): Finding[] {
  const job = store.read(newestJob);
  const isBusy = job?.state === 'in_progress' || findJobToRepair(store) !== undefined;
  const newest = isBusy ? undefined : newestReachable(store);
  if (!newest) return [];
  const text = `${versionName(newest.version)} is available.`;
  const page = `${href('system', 'upgrades')}?version=${encodeURIComponent(newest.version.id)}`;
  return [{ severity: 'info', text, href: page }];
}

/** What the sentence is about, the worst first. `info` needs no attention. */
const order: readonly Severity[] = ['bad', 'warn', 'busy'];

export function healthView({ findings }: SystemHealth): Html {
  const worst = order.find((severity) => findings.some((one) => one.severity === severity)) ?? 'good';
  const reasons = findings.filter(({ severity }) => severity === 'bad' || severity === 'warn');
  const rest = findings.filter((finding) => !reasons.includes(finding));
  return html`<div id="health" data-live="10">
    <div class="health ${worst}" role="status">
      <p><strong>${sentenceOf(worst, reasons.length)}</strong></p>
      ${findingList(reasons)}
    </div>
    ${findingList(rest)}
  </div>`;
}

function sentenceOf(worst: Severity, reasons: number): string {
  if (worst === 'good') return 'Everything works.';
  if (worst === 'busy') return 'A job is running.';
  return `${formatCount(reasons, 'thing')} ${reasons === 1 ? 'needs' : 'need'} attention.`;
}

function findingList(findings: readonly Finding[]): Html | false {
  return (
    findings.length > 0 &&
    html`<ul class="findings">
      ${findings.map(
        ({ severity, text, href }) => html`<li class="${severity}"><a href="${href}">${text}</a></li> `,
      )}
    </ul>`
  );
}
