// The pages of deliveries: what was sent to a webhook, what came of every attempt, and sending it once more.
import type { PageContext, View } from '../../rest/resource.ts';
import { actionButton } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import { type Row, renderFacts, renderPager, pageRange, renderTable } from '../../rest/html/table.ts';
import { currentMode } from '../../mode/mode.ts';
import type { Store } from '../../store/store.ts';
import type { Reader } from '../../store/transaction.ts';
import { isJobRunning } from '../../upgrades/job-table.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { type Attempt, type Delivery, bodyOf, deliveries } from '../delivery.ts';
import { type Webhook, webhooks } from '../webhook.ts';

/** The rest of what was sent is of no use to the eye. */
const mostBodyShown = 4096;

const lookOf: Readonly<Record<Delivery['state'], string>> = {
  delivered: 'good',
  failed: 'bad',
  pending: '',
  discarded: 'warn',
};

export const addressOfWebhook = (
  shown: Pick<PageContext<unknown>, 'href'>,
  id: string,
  ...beneath: string[]
) => shown.href('services', 'webhooks', id, ...beneath);

export function deliveryState({ state }: Delivery): Html {
  return html`<span class="state ${lookOf[state]}">${state}</span>`;
}

/** Back to the same part of the same page. The rest of the query is left behind: there may be a token in it. */
export function comeBack({ here, query }: PageContext<unknown>): string {
  const part = new URLSearchParams();
  for (const name of ['start', 'num']) if (query.has(name)) part.set(name, query.get(name) ?? '');
  return part.size === 0 ? here() : `${here()}?${part.toString()}`;
}

/** Why there are no buttons, where there are none: they work for a signed-in browser only, and while changes are accepted. */
export function whyNoButtons({ formToken, href }: PageContext<unknown>, store: Reader): Html | false {
  if (formToken === '') return html`<p class="hint">Sign in with this browser to have buttons here.</p>`;
  const { isReadOnly, reason, message } = currentMode(store, isJobRunning(store));
  const end =
    reason === 'upgrade'
      ? 'until the upgrade job has ended'
      : html`before <a href="${href('mode', 'update')}">read-only mode is turned off</a>`;
  return (
    isReadOnly &&
    html`<p class="notice">
      <strong>The system is read-only.</strong> ${message}<br />
      Webhooks can be neither changed nor tried ${end}.
    </p>`
  );
}

export function deliveriesTable(
  shown: PageContext<unknown>,
  webhook: Webhook,
  rows: readonly Delivery[],
  hasButtons: boolean,
): Html {
  const isPending = rows.some(({ state }) => state === 'pending');
  return html`${hasButtons && !webhook.active && activateFirst}
    ${
      isPending &&
      html`<p>
        Some have not ended yet. <a href="${comeBack(shown)}">Look again</a> to see what became of them.
      </p>`
    }
    ${renderTable(
      'Deliveries',
      ['Event', 'State', 'Attempts', 'Again'],
      rows.map((delivery): Row => {
        const { id, webhookId, event, createdAt, attempts } = delivery;
        const address = addressOfWebhook(shown, webhookId, 'deliveries', id);
        return [
          html`<a href="${address}">${event.type}</a><br />${renderTime(createdAt)}`,
          html`${deliveryState(delivery)} ${nextAttempt(delivery)}`,
          attempts.length === 0
            ? html`<span class="none">none yet</span>`
            : html`<ol class="attempts">
                ${attempts.map((attempt) => html`<li>${attemptLine(attempt)}</li> `)}
              </ol>`,
          hasButtons ? redeliverButton(shown, webhook, address) : html`<span class="none">–</span>`,
        ];
      }),
    )}`;
}

const activateFirst = html`<p class="notice" id="activate-first">
  This webhook is not active: nothing is delivered to it again until it is activated. A ping reaches it all
  the same.
</p>`;

function redeliverButton(shown: PageContext<unknown>, webhook: Webhook | undefined, address: string): Html {
  if (!webhook?.active) {
    return html`<button class="quiet" type="button" disabled aria-describedby="activate-first">
      Redeliver
    </button>`;
  }
  const { formToken } = shown;
  return actionButton({
    action: `${address}/redeliver`,
    label: 'Redeliver',
    formToken,
    next: comeBack(shown),
  });
}

function nextAttempt({ nextAttemptAt, attempts }: Delivery): Html | false {
  const isWaiting = nextAttemptAt !== null && attempts.length > 0;
  return isWaiting && html`<br /><span class="hint">next attempt<br />${renderTime(nextAttemptAt)}</span>`;
}

function attemptLine(attempt: Attempt): Html {
  return html`${renderTime(attempt.when)}, ${formatDuration(attempt.durationMs)}: ${outcomeOf(attempt)}
  ${answerOf(attempt)}`;
}

function outcomeOf({ status, error }: Attempt): Html {
  return error === null
    ? html`answered <strong class="good">${status}</strong>`
    : html`<span class="bad">${error}</span>`;
}

function answerOf({ response }: Attempt): Html | false {
  return (
    response !== null &&
    response !== '' &&
    html`<details>
      <summary>Answer</summary>
      <pre tabindex="0">${response}</pre>
    </details>`
  );
}

/** The view of a webhook's `deliveries`. */
export function showDeliveries(store: Store): View<Webhook> {
  return async (shown) => {
    const part = pageRange(shown.query, { usual: 25 });
    const disabledReason = whyNoButtons(shown, store);
    const { rows, total } = await store.page(deliveries, shown.subject.id, part.start, part.num);
    return html`<section aria-labelledby="deliveries">
      <h2 id="deliveries">
        To <a href="${addressOfWebhook(shown, shown.subject.id)}">${shown.subject.name}</a>
      </h2>
      ${
        total === 0
          ? html`<p>Nothing has been sent to it yet.</p>`
          : html`${disabledReason} ${deliveriesTable(shown, shown.subject, rows, !disabledReason)}`
      }
      ${renderPager('Deliveries', part, total)}
    </section>`;
  };
}

/** The view of one delivery. */
export function showDelivery(store: Store): View<Delivery> {
  return (shown) => {
    const { subject: delivery } = shown;
    const webhook = store.get(webhooks, delivery.webhookId);
    const { event, createdAt, endedAt, attempts } = delivery;
    const facts: [string, Html | string][] = [
      ['State', html`${deliveryState(delivery)} ${nextAttempt(delivery)}`],
      ['Webhook', html`<a href="${addressOfWebhook(shown, delivery.webhookId)}">${webhook?.name}</a>`],
      ['Service', event.service ?? html`<span class="none">none</span>`],
      ['Event id', html`<code>${event.id}</code>`],
      ['Stored', renderTime(createdAt)],
      ['Ended', endedAt === null ? html`<span class="none">not yet</span>` : renderTime(endedAt)],
    ];
    const disabledReason = whyNoButtons(shown, store);
    const body = webhook ? bodyOf(delivery, webhook) : '';
    return html`<section aria-labelledby="event">
        <h2 id="event">${event.type}</h2>
        ${renderFacts(facts)}
        ${
          disabledReason ||
          html`${webhook?.active === false && activateFirst}
          <div>${redeliverButton(shown, webhook, shown.here())}</div>`
        }
      </section>
      <section aria-labelledby="attempts">
        <h2 id="attempts">${formatCount(attempts.length, 'attempt')}</h2>
        ${attempts.length > 0 && attemptsTable(attempts)}
      </section>
      <section aria-labelledby="sent">
        <h2 id="sent">What is sent</h2>
        <pre tabindex="0">${body.slice(0, mostBodyShown)}${body.length > mostBodyShown && ' …'}</pre>
      </section>`;
  };
}

function attemptsTable(attempts: readonly Attempt[]): Html {
  return renderTable(
    'Attempts',
    ['When', 'Took', 'Outcome', 'Answer'],
    attempts.map((attempt): Row => [
      renderTime(attempt.when),
      html`${formatDuration(attempt.durationMs)}`,
      outcomeOf(attempt),
      html`${answerOf(attempt) || html`<span class="none">–</span>`}`,
    ]),
  );
}
