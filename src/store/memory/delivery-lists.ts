// The deliveries in memory, by webhook: pending ones in the order in which they are claimed, finished ones in the order in which they are
// removed.
//
// Every webhook has one heap of pending deliveries for each priority, ordered by the time since which they wait. A delivery that is
// replaced, claimed or removed stays in its heap. Reading the heap skips such outdated entries, and `#rebuildHeaps` removes them before
// they pile up. `claim` goes round the webhooks: a webhook whose delivery was claimed moves to the end of the turns.
import {
  type Delivery,
  bytesOfFinished,
  discard,
  isUntried,
  priorityOf,
  waitingSince,
} from '../../webhooks/delivery.ts';
import { bytesOfPayload } from '../../webhooks/event.ts';
import { freeze } from '../changes.ts';
import type { ClaimRequest, Claimed } from '../delivery-queue.ts';
import { type Heap, createHeap } from './heap.ts';

/** The most bytes of finished deliveries. Beyond it, the deliveries that finished first are removed, of all webhooks. */
const maxFinishedBytes = 64 * 1024 ** 2;

type Heaps = Readonly<Record<0 | 1 | 2, Heap<Delivery>>>;

type Next = { readonly at: number; readonly delivery: Delivery; readonly heap: Heap<Delivery> };

/** The deliveries of one webhook. */
type WebhookLists = {
  /** Oldest first. */
  readonly deliveries: Map<string, Delivery>;
  /** Pending deliveries, and outdated entries. */
  heaps: Heaps;
  /** Ids in the order the deliveries finished; untried ones are in `untried`. */
  readonly finished: Set<string>;
  readonly untried: Set<string>;
};

export class DeliveryLists {
  readonly #keep: number;
  readonly #byWebhook = new Map<string, WebhookLists>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #claimed = new Set<string>();
  /** Webhooks that may have pending deliveries, in the order of their turns. */
  readonly #turns = new Set<string>();
  /** Ids of all webhooks in the order the deliveries finished. */
  readonly #finished = new Set<string>();
  #finishedBytes = 0;
  #pending = 0;
  #pendingBytes = 0;

  /** `keep` is how many finished deliveries each webhook keeps. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  pending(): { count: number; bytes: number } {
    return { count: this.#pending, bytes: this.#pendingBytes };
  }

  oldestPendingAt(): number | undefined {
    let oldest: number | undefined;
    for (const { state, createdAt } of this.#deliveries.values()) {
      if (state === 'pending' && createdAt < (oldest ?? Infinity)) oldest = createdAt;
    }
    return oldest;
  }

  find(id: string): Delivery | undefined {
    return this.#deliveries.get(id);
  }

  page(webhookId: string, start: number, num: number): { deliveries: Delivery[]; total: number } {
    const all = [...(this.#byWebhook.get(webhookId)?.deliveries.values() ?? [])];
    return { deliveries: all.reverse().slice(start, start + num), total: all.length };
  }

  /** Adds the delivery, or replaces the one with the same id. */
  put(delivery: Delivery): void {
    const { id, webhookId } = delivery;
    const lists = this.#listsOf(webhookId);
    this.#count(this.#deliveries.get(id), -1);
    this.#count(delivery, 1);
    this.#deliveries.set(id, delivery);
    lists.deliveries.set(id, delivery);
    if (delivery.state === 'pending') {
      schedule(lists, delivery);
      this.#rebuildHeaps(lists);
      this.#turns.add(webhookId);
      return;
    }
    (isUntried(delivery) ? lists.untried : lists.finished).add(id);
    this.#finished.add(id);
    this.#trim(lists);
    this.#limitFinished();
  }

  delete(webhookId: string): void {
    const lists = this.#byWebhook.get(webhookId);
    if (lists) for (const id of lists.deliveries.keys()) this.#remove(id, lists);
    this.#byWebhook.delete(webhookId);
    this.#turns.delete(webhookId);
  }

  discardPending(webhookId: string, at: number): void {
    for (const delivery of [...(this.#byWebhook.get(webhookId)?.deliveries.values() ?? [])]) {
      const { id, state, isPing } = delivery;
      if (state === 'pending' && !isPing && !this.#claimed.has(id)) this.put(freeze(discard(delivery, at)));
    }
  }

  /** Whether the delivery is claimed and still the one that `claim` returned. */
  holds(claimed: Delivery): boolean {
    return this.#claimed.has(claimed.id) && this.#deliveries.get(claimed.id) === claimed;
  }

  /** Ends the claim; `undefined` deletes the delivery. */
  complete(claimed: Delivery, delivery: Delivery | undefined): void {
    this.#claimed.delete(claimed.id);
    if (delivery) this.put(delivery);
    else this.#remove(claimed.id, this.#listsOf(claimed.webhookId));
  }

  claim({ at, most, retryWaitMs, receiverOf, roomFor }: ClaimRequest): Claimed {
    const taken: Delivery[] = [];
    const rooms = new Map<string, number>();
    let nextAt: number | undefined;
    const roomOf = (webhookId: string) => {
      const receiver = receiverOf(webhookId);
      return rooms.get(receiver) ?? roomFor(receiver);
    };
    // The loop adds a webhook to the end of the set it iterates over, so it visits the webhook again.
    for (const webhookId of this.#turns) {
      const next = this.#nextOf(this.#listsOf(webhookId), at, retryWaitMs);
      if (next === undefined) {
        this.#turns.delete(webhookId);
        continue;
      }
      const isDue = next.at <= at;
      const room = isDue ? roomOf(webhookId) : Infinity;
      if (room <= 0) continue;
      if (!isDue || taken.length >= most) {
        nextAt = Math.min(nextAt ?? Infinity, next.at);
        if (isDue) break;
        continue;
      }
      next.heap.pop();
      this.#claimed.add(next.delivery.id);
      taken.push(next.delivery);
      rooms.set(receiverOf(webhookId), room - 1);
      this.#turns.delete(webhookId);
      this.#turns.add(webhookId);
    }
    return { deliveries: taken, nextAt };
  }

  #listsOf(webhookId: string): WebhookLists {
    const lists = this.#byWebhook.get(webhookId) ?? createLists();
    this.#byWebhook.set(webhookId, lists);
    return lists;
  }

  /** `sign` is 1 for a delivery that is added and -1 for one that is removed or replaced. */
  #count(delivery: Delivery | undefined, sign: 1 | -1): void {
    if (delivery === undefined) return;
    if (delivery.state === 'pending') {
      this.#pending += sign;
      this.#pendingBytes += sign * bytesOfPayload(delivery.event);
    } else {
      this.#finishedBytes += sign * bytesOfFinished(delivery);
    }
  }

  #remove(id: string, lists: WebhookLists): void {
    this.#count(this.#deliveries.get(id), -1);
    this.#deliveries.delete(id);
    this.#claimed.delete(id);
    this.#finished.delete(id);
    lists.deliveries.delete(id);
    lists.finished.delete(id);
    lists.untried.delete(id);
  }

  #trim(lists: WebhookLists): void {
    for (const ids of [lists.untried, lists.finished]) {
      for (const id of ids) {
        if (lists.untried.size + lists.finished.size <= this.#keep) return;
        this.#remove(id, lists);
      }
    }
  }

  #limitFinished(): void {
    for (const id of this.#finished) {
      const delivery = this.#deliveries.get(id);
      if (delivery === undefined || this.#finishedBytes <= maxFinishedBytes) return;
      this.#remove(id, this.#listsOf(delivery.webhookId));
    }
  }

  /** Rebuilds the heaps when they hold more than twice as many entries as the webhook has deliveries. */
  #rebuildHeaps(lists: WebhookLists): void {
    const entries = Object.values(lists.heaps).reduce((sum, heap) => sum + heap.size(), 0);
    if (entries <= 2 * lists.deliveries.size + 16) return;
    lists.heaps = createHeaps();
    for (const delivery of lists.deliveries.values()) {
      if (delivery.state === 'pending' && !this.#claimed.has(delivery.id)) schedule(lists, delivery);
    }
  }

  /** The next delivery of the webhook: the first in the order of priorities that is due, or else the one that is due first. */
  #nextOf({ heaps }: WebhookLists, at: number, retryWaitMs: number): Next | undefined {
    const heads = [
      this.#headOf(heaps[0], 0),
      this.#headOf(heaps[1], retryWaitMs),
      this.#headOf(heaps[2], 0),
    ].filter((head) => head !== undefined);
    const due = heads.find((head) => head.at <= at);
    return (
      due ??
      heads.reduce<Next | undefined>(
        (first, head) => (first && first.at <= head.at ? first : head),
        undefined,
      )
    );
  }

  /** The first entry of the heap that is not outdated. */
  #headOf(heap: Heap<Delivery>, waitMs: number): Next | undefined {
    for (;;) {
      const head = heap.peek();
      if (head === undefined) return undefined;
      const { id } = head.value;
      if (this.#deliveries.get(id) === head.value && !this.#claimed.has(id))
        return { at: head.at + waitMs, delivery: head.value, heap };
      heap.pop();
    }
  }
}

function schedule({ heaps }: WebhookLists, delivery: Delivery): void {
  heaps[priorityOf(delivery)].push(waitingSince(delivery), delivery);
}

function createLists(): WebhookLists {
  return { deliveries: new Map(), heaps: createHeaps(), finished: new Set(), untried: new Set() };
}

function createHeaps(): Heaps {
  return { 0: createHeap(), 1: createHeap(), 2: createHeap() };
}
