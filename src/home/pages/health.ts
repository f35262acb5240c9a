// The health of the system in one sentence: what needs attention, why, and where to act on it.
import { isUnavailable } from '../../errors.ts';
import { type Html, html } from '../../rest/html/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { formatCount } from '../../lib/format.ts';
import { findJobToRepair } from '../../upgrades/job-to-repair.ts';
import { jobProgress } from '../../upgrades/job-status.ts';
import { type Job, newestJob } from '../../upgrades/job-table.ts';
import { newestReachable } from '../../upgrades/hops.ts';
import { versionName } from '../../upgrades/pages/versions.ts';
import type { FailureWindow } from '../../webhooks/failure-window.ts';
import { webhookSettings } from '../../webhooks/settings.ts';
import { type Webhook, listWebhooks, webhookToJson } from '../../webhooks/webhook.ts';

export type Severity = 'good' | 'info' | 'warn' | 'bad';

/** A reason, as a sentence with a link. */
type Finding = { readonly severity: Severity; readonly text: string; readonly href: string };

/** A webhook with failures that has not been deactivated yet, and how many more failures deactivate it. */
export type FailingWebhook = { readonly webhook: Webhook; readonly left: number };

export type Health = {
  readonly findings: readonly Finding[];
  readonly failing: readonly FailingWebhook[];
  readonly deactivated: readonly Webhook[];
};

const maxListed = 5;

export async function readHealth(store: ReadableStore, { href, now }: PageContext<unknown>): Promise<Health> {
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
    ...failing.slice(0, maxListed).map(({ webhook, left }): Finding => ({
      severity: 'warn',
      text: `Webhook ${webhook.name} will be deactivated after ${formatCount(left, 'more failure')}.`,
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
    return [
      { severity: 'bad', text: `The ${what} to ${job.to} has failed. ${job.reason ?? ''}`, href: page },
    ];
  }
  const { percent } = jobProgress(job, now);
  return [{ severity: 'info', text: `The ${what} to ${job.to} is running: ${percent} %.`, href: page }];
}

/** The webhooks that are nearest to their deactivation come first. */
async function findFailingWebhooks(store: ReadableStore, at: number): Promise<FailingWebhook[]> {
  const settings = store.read(webhookSettings);
  const windows = await readFailureWindows(store);
  return listWebhooks(store)
    .filter(({ active }) => active)
    .map((webhook) => {
      const { failures } = webhookToJson(webhook, windows.get(webhook.id) ?? null, settings, at);
      return {
        webhook,
        count: failures.count,
        left: Math.max(1, settings.numberOfFailures - failures.count),
      };
    })
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.left - b.left);
}

/** Empty while the database is unavailable, so that the page still shows the rest. */
async function readFailureWindows(store: ReadableStore): Promise<ReadonlyMap<string, FailureWindow>> {
  try {
    return await store.deliveries.failureWindows();
  } catch (error) {
    if (isUnavailable(error)) return new Map();
    throw error;
  }
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

const order: readonly Severity[] = ['bad', 'warn', 'info', 'good'];

export function healthView({ findings }: Health): Html {
  const worst = order.find((severity) => findings.some((one) => one.severity === severity)) ?? 'good';
  const needsAttention = findings.filter(({ severity }) => severity === 'bad' || severity === 'warn').length;
  const sentence =
    needsAttention === 0
      ? 'Everything works.'
      : `${formatCount(needsAttention, 'thing')} ${needsAttention === 1 ? 'needs' : 'need'} attention.`;
  return html`<div class="health ${worst === 'info' ? 'good' : worst}" id="health" role="status" data-live="10">
    <p><strong>${sentence}</strong></p>
    <ul>
      ${findings.map(
        ({ severity, text, href }) => html`<li class="${severity}"><a href="${href}">${text}</a></li> `,
      )}
    </ul>
  </div>`;
}
