// The courier carries deliveries to their receivers: claims what is due while there are slots, sends it, and records what came of it.
// A slow receiver takes up its own few slots and nobody else's.
import type { Store } from '../store/store.ts';
import type { Tasks } from '../tasks.ts';
import type { World } from '../world.ts';
import {
  type Attempt,
  type Deactivated,
  type Delivery,
  bodyOf,
  deactivatedNews,
  deliveries,
  discardClaimed,
  settleAttempt,
} from './delivery.ts';
import type { Herald } from './herald.ts';
import { receiverOf } from './receiver.ts';
import { webhookSettings } from './settings.ts';
import { signBody } from './signature.ts';
import { type Webhook, signingKeys, webhooks } from './webhook.ts';

const mostPerReceiver = 4;

/** Why an attempt was ended. */
const late = 'late';

/** How long attempts under way may take to end when the process stops. */
const graceMs = 3_000;

export type CourierOptions = {
  store: Store;
  world: World;
  tasks: Tasks;
  herald: Herald;
  /** Attempts under way at once. */
  concurrency: number;
  /** Finished deliveries kept of each webhook. */
  history: number;
  userAgent: string;
  /** Told after each attempt, for the metrics. */
  onAttempt: (attempt: Attempt, delivery: Delivery) => void;
  onDeactivated: (deactivated: Deactivated) => void;
};

export function startCourier(options: CourierOptions): void {
  const { store, world, tasks, herald, history } = options;
  /** What ends each attempt that is under way. */
  const underway = new Set<AbortController>();
  const perReceiver = new Map<string, number>();
  const slots = new Map<string, string>();
  let alarm: { readonly at: number; readonly cancel: AbortController } | undefined;
  let seenVersion = -1;
  let isClaiming = false;
  let hasNews = false;
  let isStopping = false;
  /** Aborted when the last attempt of a stopping process has ended. */
  const drained = new AbortController();

  /** Takes a slot for the delivery if its receiver has one to spare. */
  function reserve({ id, webhookId }: Delivery): boolean {
    const webhook = store.get(webhooks, webhookId);
    const receiver = webhook ? receiverOf(webhook.hookUrl) : '';
    const taken = perReceiver.get(receiver) ?? 0;
    if (taken >= mostPerReceiver) return false;
    perReceiver.set(receiver, taken + 1);
    slots.set(id, receiver);
    return true;
  }

  function freeSlot({ id }: Delivery): void {
    const receiver = slots.get(id) ?? '';
    const left = (perReceiver.get(receiver) ?? 1) - 1;
    if (left === 0) perReceiver.delete(receiver);
    else perReceiver.set(receiver, left);
    slots.delete(id);
  }

  /** Claims again as long as there was news meanwhile. */
  async function claim(stopping: AbortSignal): Promise<void> {
    try {
      while (hasNews && !stopping.aborted) {
        hasNews = false;
        seenVersion = store.version(deliveries);
        const most = options.concurrency - slots.size;
        const { rows, nextAt } = await store.claim(deliveries, { at: world.now(), most, reserve });
        for (const delivery of rows) tasks.start('delivery', () => carry(delivery));
        if (nextAt !== undefined) wakeAt(nextAt);
      }
    } finally {
      isClaiming = false;
    }
  }

  function wake(): void {
    hasNews = true;
    if (isClaiming) return;
    isClaiming = true;
    tasks.start('courier', claim);
  }

  function wakeAt(at: number): void {
    if (alarm && alarm.at <= at) return;
    alarm?.cancel.abort();
    const cancel = new AbortController();
    alarm = { at, cancel };
    world.sleep(Math.max(0, at - world.now()), cancel.signal).then(
      () => {
        alarm = undefined;
        wake();
      },
      () => undefined,
    );
  }

  /** One attempt, from the claim to its record. The webhook and the settings are those of this moment. */
  async function carry(delivery: Delivery): Promise<void> {
    const webhook = store.get(webhooks, delivery.webhookId);
    const isWanted = webhook !== undefined && (webhook.active || delivery.isPing);
    const attempt = isWanted ? await send(delivery, webhook) : 'unwanted';
    freeSlot(delivery);
    const at = world.now();
    if (attempt === 'unwanted') {
      await store.update((transaction) => discardClaimed(transaction, delivery, { keep: history, at }));
    } else if (attempt === 'interrupted') {
      await store.update((transaction) => transaction.settle(deliveries, delivery));
    } else {
      const { delivery: settled, deactivated } = await store.update((transaction) => {
        const result = settleAttempt(transaction, delivery, attempt, { keep: history, at });
        if (result.deactivated) herald.announce(transaction, deactivatedNews(result.deactivated), at);
        return result;
      });
      options.onAttempt(attempt, settled);
      if (deactivated) options.onDeactivated(deactivated);
    }
  }

  async function send(delivery: Delivery, webhook: Webhook): Promise<Attempt | 'interrupted'> {
    const seconds = store.read(webhookSettings).notificationTimeOutInSeconds;
    const when = world.now();
    const over = new AbortController();
    world.sleep(seconds * 1000, over.signal).then(
      () => over.abort(late),
      () => undefined,
    );
    underway.add(over);
    const end = (status: number | null, error: string | null, response: string | null): Attempt => ({
      ...{ when, durationMs: Math.max(0, world.now() - when), status, error, response },
    });
    try {
      const outgoing = { ...compose(delivery, webhook, when), connectWithinMs: seconds * 1000 };
      const { status, body } = await world.post(outgoing, over.signal);
      const isGood = status >= 200 && status < 300;
      return end(status, isGood ? null : `The receiver answered ${status}.`, readText(body));
    } catch (error) {
      if (over.signal.reason === late)
        return end(null, `There was no complete answer within ${seconds} seconds.`, null);
      if (over.signal.aborted) return 'interrupted';
      return end(null, (error as Error).message, null);
    } finally {
      underway.delete(over);
      over.abort();
      if (isStopping && underway.size === 0) drained.abort();
    }
  }

  function compose(delivery: Delivery, webhook: Webhook, at: number) {
    const { id } = delivery.event;
    const body = bodyOf(delivery, webhook);
    const timestampSeconds = Math.floor(at / 1000);
    const headers = {
      'content-type': webhook.contentType,
      'user-agent': options.userAgent,
      'webhook-id': id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signBody({ id, timestampSeconds, body, keys: signingKeys(webhook, at) }),
    };
    return { url: webhook.hookUrl, headers, body };
  }

  const stopListening = store.onUpdate(() => {
    if (store.version(deliveries) !== seenVersion) wake();
  });
  tasks.start('courier', async (stopping) => {
    await new Promise((resolve) => stopping.addEventListener('abort', resolve));
    isStopping = true;
    stopListening();
    alarm?.cancel.abort();
    if (underway.size === 0) return;
    await world.sleep(graceMs, drained.signal).catch(() => undefined);
    for (const over of underway) over.abort();
  });
  wake();
}

/** As much as can be read as text; a character that was cut in two is left out. */
function readText(bytes: Buffer): string {
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll('\0', '\uFFFD');
}
