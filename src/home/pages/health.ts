// The health of the system in one sentence: what needs attention, why, and where to act on it.
import { capitaliseWord } from '../../console/labels.ts';
import type { PageLink } from '../../console/layout.ts';
import { renderAgo, renderSentence } from '../../console/time.ts';
import { isUnavailable } from '../../lib/errors.ts';
import { formatCount, formatList, formatNumber } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { jobProgress } from '../../upgrades/jobs/job-service.ts';
import { newestJob } from '../../upgrades/jobs/job-table.ts';
import { reasonNotToResume } from '../../upgrades/jobs/job.ts';
import { resumeButton } from '../../upgrades/pages/job-parts.ts';
import { formatAnswer, webhookHref } from '../../webhooks/pages/parts.ts';
import { formatEvents, recoveryButton } from '../../webhooks/pages/recovery.ts';
import { countUndelivered, readHealths } from '../../webhooks/queue/redelivery.ts';
import type { HealthView, WebhookHealth } from '../../webhooks/webhook.ts';

/** `busy`: a job is running. */
export type Severity = 'good' | 'busy' | 'warn' | 'bad';

/** A reason, as a sentence that may begin with a link, and what the reader can do. */
type Finding = {
  readonly severity: Severity;
  /** How many things it is about. */
  readonly count: number;
  readonly subject?: PageLink;
  readonly text: Html | string;
  readonly action?: Html | false;
};

export type SystemHealth = {
  readonly findings: readonly Finding[];
  readonly webhooks: readonly HealthView[];
};

/** How many webhooks of a kind have a line of their own. */
const maxNames = 3;

export async function readSystemHealth(
  store: ReadableStore,
  page: PageContext<unknown>,
): Promise<SystemHealth> {
  const { now } = page;
  const all = await readHealths(store, now);
  const active = all.filter(({ webhook }) => webhook.active);
  const outcomes = await store.deliveries.lastOutcomes(active.map(({ webhook }) => webhook.id));
  const outcomeOf = ({ webhook }: HealthView) => outcomes.get(webhook.id);
  const deactivated = all.filter(({ health }) => health === 'deactivated');
  // The webhooks that are nearest to their deactivation come first.
  const failing = active.filter(({ failures }) => failures > 0).sort((a, b) => a.left - b.left);
  const hasRecovered = (view: HealthView) => view.health !== 'failing' && outcomeOf(view) === 'delivered';
  const endangered = failing.filter((view) => !hasRecovered(view));
  const unreached = active.filter((view) => view.failures === 0 && outcomeOf(view) === 'failed');
  const reported = new Set([...endangered, ...unreached]);
  const behind = all.filter((view) => view.health === 'behind' && !reported.has(view));
  const findings: Finding[] = [
    ...store
      .problems()
      .map((text): Finding => ({ severity: 'bad', count: 1, text: `${capitaliseWord(text)}.` })),
    ...findJob(store, page),
    ...(await Promise.all(deactivated.slice(0, maxNames).map((view) => findDeactivated(store, view, page)))),
    ...group(page, 'bad', deactivated.slice(maxNames), 'deactivated', {
      one: () => 'was deactivated after too many failures.',
      many: 'more were deactivated after too many failures',
    }),
    ...group(page, 'warn', endangered, 'failing', {
      one: explainDanger,
      many: 'will be deactivated after more failures',
    }),
    ...group(page, 'warn', unreached, undefined, {
      one: () => 'did not accept the last delivery.',
      many: 'did not accept the last delivery',
    }),
    ...group(page, 'warn', behind, 'behind', {
      one: () => 'did not get all events.',
      many: 'did not get all events',
    }),
  ];
  return { findings, webhooks: all };
}

/** What the receiver has answered last, and a button that repairs it. */
async function findDeactivated(
  store: ReadableStore,
  { webhook }: HealthView,
  page: PageContext<unknown>,
): Promise<Finding> {
  const { deliveries } = await store.deliveries.page({ webhookId: webhook.id, states: ['failed'] }, 0, 1);
  const attempt = deliveries[0]?.attempts.at(-1);
  const undelivered = (await countUndelivered(store, [webhook], page.now)).get(webhook.id) ?? 0;
  const ago = renderAgo(webhook.deactivatedAt ?? 0, page.now);
  const answer = attempt && [attempt.status, formatAnswer(attempt)].filter(Boolean).join(' ');
  const isOne = undelivered === 1;
  const waiting = undelivered > 0 ? ` ${formatEvents(undelivered)} ${isOne ? 'is' : 'are'} waiting.` : '';
  return {
    severity: 'bad',
    count: 1,
    subject: { name: webhook.name, href: webhookHref(page, webhook.id) },
    text: html`was deactivated ${ago}${answer && `: ${answer.replace(/\.$/, '')}`}.${waiting}`,
    action: undelivered > 0 && recoveryButton(page, webhook, undelivered),
  };
}

function explainDanger({ failures, left, windowEnd }: HealthView): string {
  const until = windowEnd === null ? '' : ` until ${new Date(windowEnd).toISOString()}`;
  return `has ${failures} of ${failures + left} failures. ${formatNumber(left)} more${until} ${left === 1 ? 'deactivates' : 'deactivate'} it.`;
}

/** One finding for all webhooks of a kind. */
function group(
  page: PageContext<unknown>,
  severity: Severity,
  found: readonly HealthView[],
  health: WebhookHealth | undefined,
  texts: { readonly one: (view: HealthView) => string; readonly many: string },
): Finding[] {
  const [first] = found;
  if (!first) return [];
  const all = page.href('services', 'webhooks');
  const names = found.map(({ webhook }) => webhook.name);
  const isOne = found.length === 1;
  return [
    {
      severity,
      count: found.length,
      subject: isOne
        ? { name: first.webhook.name, href: webhookHref(page, first.webhook.id) }
        : { name: `${found.length} webhooks`, href: health === undefined ? all : `${all}?health=${health}` },
      text: isOne ? texts.one(first) : `${texts.many}: ${formatList(names, maxNames)}.`,
    },
  ];
}

function findJob(store: ReadableStore, page: PageContext<unknown>): Finding[] {
  const job = store.read(newestJob);
  if (job?.state !== 'in_progress' && job?.state !== 'failed') return [];
  const subject = {
    name: `The ${job.operation} to ${job.to}`,
    href: page.href('system', 'jobs', job.id),
  };
  if (job.state === 'in_progress')
    return [
      { severity: 'busy', count: 1, subject, text: `is running: ${jobProgress(job, page.now).percent} %.` },
    ];
  const action = reasonNotToResume(store, job) === undefined && resumeButton(store, job, page, subject.href);
  return [{ severity: 'bad', count: 1, subject, text: `has failed. ${job.reason ?? ''}`, action }];
}

/** Undefined while the database is unavailable: the page then shows that it is not known. */
export async function whileAvailable<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isUnavailable(error)) return undefined;
    throw error;
  }
}

/** What the sentence is about, the worst first. */
const order: readonly Severity[] = ['bad', 'warn', 'busy'];

export function healthView(health: SystemHealth | undefined): Html {
  const { findings, webhooks } = health ?? { findings: [], webhooks: [] };
  const worst = order.find((severity) => findings.some((one) => one.severity === severity)) ?? 'good';
  const count = findings.reduce((sum, { severity, count }) => sum + (severity === 'busy' ? 0 : count), 0);
  return html`<div id="health" data-live="5" data-problems="${count}">
    <div class="health ${health ? worst : 'unknown'}" role="status">
      <p class="claim"><strong>${health ? sentenceOf(worst, count, webhooks.length > 0) : 'Not known now.'}</strong></p>
      ${findingList(findings)}
    </div>
  </div>`;
}

function sentenceOf(worst: Severity, reasons: number, isUsed: boolean): string {
  if (worst === 'good') return isUsed ? 'Everything works.' : 'Ready.';
  if (worst === 'busy') return 'A job is running.';
  return `${formatCount(reasons, 'thing')} ${reasons === 1 ? 'needs' : 'need'} attention.`;
}

function findingList(findings: readonly Finding[]): Html | false {
  return (
    findings.length > 0 &&
    html`<ul class="findings">
      ${findings.map(
        ({ severity, subject, text, action }) =>
          html`<li class="${severity}"><span>${subject && html`<a href="${subject.href}"><bdi>${subject.name}</bdi></a>`} ${typeof text === 'string' ? renderSentence(text) : text}</span> ${action}</li> `,
      )}
    </ul>`
  );
}
