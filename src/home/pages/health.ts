// The health of the system in one sentence: what needs attention, why, and where to act on it.
import { capitaliseWord } from '../../console/labels.ts';
import { renderSentence } from '../../console/time.ts';
import { isUnavailable } from '../../lib/errors.ts';
import { formatCount, formatList } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { jobProgress } from '../../upgrades/jobs/job-service.ts';
import { type Job, newestJob } from '../../upgrades/jobs/job-table.ts';
import { readHealths } from '../../webhooks/queue/redelivery.ts';
import type { HealthView, WebhookHealth } from '../../webhooks/webhook.ts';

/** `busy`: a job is running. */
export type Severity = 'good' | 'info' | 'busy' | 'warn' | 'bad';

/** A reason, as a sentence, with a link to where the reader can act on it. */
type Finding = {
  readonly severity: Severity;
  /** How many things it is about. */
  readonly count: number;
  readonly text: string;
  readonly href?: string;
};

export type SystemHealth = {
  readonly findings: readonly Finding[];
  readonly webhooks: readonly HealthView[];
};

const maxNames = 3;

export async function readSystemHealth(
  store: ReadableStore,
  page: PageContext<unknown>,
): Promise<SystemHealth> {
  const { href, now } = page;
  const all = await readHealths(store, now);
  const active = all.filter(({ webhook }) => webhook.active);
  const outcomes = await store.deliveries.lastOutcomes(active.map(({ webhook }) => webhook.id));
  const outcomeOf = ({ webhook }: HealthView) => outcomes.get(webhook.id);
  const deactivated = all.filter(({ health }) => health === 'deactivated');
  const inactive = all.filter(({ health }) => health === 'inactive');
  // The webhooks that are nearest to their deactivation come first.
  const failing = active.filter(({ failures }) => failures > 0).sort((a, b) => a.left - b.left);
  const hasRecovered = (view: HealthView) => view.health !== 'failing' && outcomeOf(view) === 'delivered';
  const recovered = failing.filter(hasRecovered);
  const endangered = failing.filter((view) => !hasRecovered(view));
  const unreached = active.filter((view) => view.failures === 0 && outcomeOf(view) === 'failed');
  const reported = new Set([...endangered, ...unreached]);
  const behind = all.filter((view) => view.health === 'behind' && !reported.has(view));
  const findings: Finding[] = [
    ...store
      .problems()
      .map((text): Finding => ({ severity: 'bad', count: 1, text: `${capitaliseWord(text)}.` })),
    ...findJob(store.read(newestJob), now, href),
    ...group(page, 'bad', deactivated, 'deactivated', {
      one: ({ webhook: { name } }) => `Webhook ${name} was deactivated after too many failures.`,
      many: 'were deactivated after too many failures',
    }),
    ...group(page, 'warn', endangered, 'failing', {
      one: ({ webhook: { name }, left }) =>
        `Webhook ${name} will be deactivated after ${formatCount(left, 'more failure')}.`,
      many: 'will be deactivated after more failures',
    }),
    ...group(page, 'warn', unreached, undefined, {
      one: ({ webhook: { name } }) => `The last delivery of webhook ${name} failed.`,
      many: 'have a last delivery that failed',
    }),
    ...group(page, 'warn', behind, 'behind', {
      one: ({ webhook: { name } }) => `Webhook ${name} did not get all events.`,
      many: 'did not get all events',
    }),
    ...recovered.slice(0, maxNames).map(({ webhook, left }): Finding => ({
      severity: 'info',
      count: 1,
      text: `Webhook ${webhook.name} works again. ${formatCount(left, 'more failure')} would deactivate it.`,
      href: href('services', 'webhooks', webhook.id),
    })),
    ...group(page, 'info', inactive, 'inactive', {
      one: ({ webhook: { name } }) => `Webhook ${name} is inactive.`,
      many: 'are inactive',
    }),
  ];
  return { findings, webhooks: all };
}

/** One finding for all webhooks of a kind. */
function group(
  { href }: PageContext<unknown>,
  severity: Severity,
  found: readonly HealthView[],
  health: WebhookHealth | undefined,
  texts: { readonly one: (view: HealthView) => string; readonly many: string },
): Finding[] {
  const [first] = found;
  if (!first) return [];
  const isOne = found.length === 1;
  const names = found.map(({ webhook }) => webhook.name);
  const query = health === undefined ? '' : `?health=${health}`;
  return [
    {
      severity,
      count: found.length,
      text: isOne
        ? texts.one(first)
        : `${found.length} webhooks ${texts.many}: ${formatList(names, maxNames)}.`,
      href: isOne
        ? href('services', 'webhooks', first.webhook.id)
        : `${href('services', 'webhooks')}${query}`,
    },
  ];
}

function findJob(job: Job | null, now: number, href: PageContext<unknown>['href']): Finding[] {
  if (job?.state !== 'in_progress' && job?.state !== 'failed') return [];
  const what = job.operation === 'upgrade' ? 'upgrade' : 'rollback';
  const found = (severity: Severity, text: string): Finding[] => [
    { severity, count: 1, text, href: href('system', 'jobs', job.id) },
  ];
  if (job.state === 'failed') return found('bad', `The ${what} to ${job.to} has failed. ${job.reason ?? ''}`);
  return found('busy', `The ${what} to ${job.to} is running: ${jobProgress(job, now).percent} %.`);
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

/** What the sentence is about, the worst first. `info` needs no attention. */
const order: readonly Severity[] = ['bad', 'warn', 'busy'];

export function healthView(health: SystemHealth | undefined, steps: Html | false): Html {
  const { findings } = health ?? { findings: [] };
  const worst = order.find((severity) => findings.some((one) => one.severity === severity)) ?? 'good';
  const reasons = findings.filter(({ severity }) => severity === 'bad' || severity === 'warn');
  const rest = findings.filter((finding) => !reasons.includes(finding));
  const count = reasons.reduce((sum, finding) => sum + finding.count, 0);
  return html`<div id="health" data-live="5" data-problems="${count}">
    <div class="health ${health ? worst : 'unknown'}" role="status">
      <p class="claim"><strong>${health ? sentenceOf(worst, count, rest.length) : 'Not known now.'}</strong></p>
      ${findingList(reasons)}
    </div>
    ${findingList(rest)} ${steps}
  </div>`;
}

function sentenceOf(worst: Severity, reasons: number, others: number): string {
  if (worst === 'good') return others === 0 ? 'Everything works.' : 'Nothing needs attention.';
  if (worst === 'busy') return 'A job is running.';
  return `${formatCount(reasons, 'thing')} ${reasons === 1 ? 'needs' : 'need'} attention.`;
}

function findingList(findings: readonly Finding[]): Html | false {
  return (
    findings.length > 0 &&
    html`<ul class="findings">
      ${findings.map(
        ({ severity, text, href }) =>
          html`<li class="${severity}">${href === undefined ? text : html`<a href="${href}">${renderSentence(text)}</a>`}</li> `,
      )}
    </ul>`
  );
}
