// The port of the delivery queue: deliveries and remembered event ids.
//
// A pending delivery is free or claimed by one process:
//
//     publish or enqueue → free ── claim ──→ claimed ── complete ──→ free (a retry) or finished
//                                               └────── release ──→ free, unchanged
//
// A claim ends when the delivery is completed, released or deleted, or when the process is dead: then any process
// may claim the delivery again. A call with a claim that has ended changes nothing and returns undefined, unless a
// crash has undone the claim, or others have released it, and nobody has claimed the delivery since.
//
// A delivery has a priority: a ping goes before a retry, a retry before a first attempt. Pings and first attempts
// are always due, retries `retryWaitMs` after the end of the last attempt. Webhooks take turns, so that a webhook with
// many deliveries cannot starve the others.
//
// A finished delivery that can be recovered (`isRecoverable`) is kept by a limit of its own. `redeliver` repeats
// deliveries, and links each to the one that repeats it.
//
// `publish` and `complete` take a rule, as `Store.update` does, and run it on a state that is at least as new as
// the call. They lock only the rows they write. What also changes a webhook, such as a failure that is counted, is an
// update.
import { ServiceError } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import type { Reader } from '../../store/state.ts';
import type { WebhookEvent } from '../event.ts';
import type { Webhook } from '../webhook.ts';
import type { DeliveryFilter, DeliveryPage } from './delivery-filter.ts';
import type { AnnounceOptions, Delivery, FinishedKind } from './delivery.ts';
import type { History, HistoryRequest } from './history.ts';
import type { Counted, Redelivery } from './redelivery.ts';

export type DeliveryQueue = {
  /**
   * Stores the deliveries that the rule returns, and returns how many are pending. With `remember`, the event id is
   * stored in the same transaction; if it was stored less than 24 hours before, nothing is added and the result is
   * the number of the first call.
   */
  publish: (rule: (reader: Reader) => readonly Delivery[], remember?: Remembered) => Promise<number>;
  /** Sets the rule that finds the deliveries of announced events. */
  distributeWith: (rule: Distribution) => void;
  /** The event that was published with this id less than 24 hours before `at`. */
  findEvent: (eventId: string, at: number) => Promise<RememberedEvent | undefined>;
  /**
   * Deletes the event ids that were published 24 hours before `at` or earlier, in batches. `stopping` ends it
   * between two batches.
   */
  forgetEvents: (at: number, stopping?: AbortSignal) => Promise<void>;
  claim: (request: ClaimRequest) => Promise<Claimed>;
  /** Replaces a claimed delivery and releases the claim. Undefined if the claim has ended. */
  complete: (claimed: Delivery, rule: (reader: Reader) => Completion) => Promise<Completed | undefined>;
  /** Releases claims without a change. */
  release: (claimed: readonly Delivery[]) => Promise<void>;
  find: (id: string) => Promise<Delivery | undefined>;
  /** One page of the deliveries that match, newest first. */
  page: (filter: DeliveryFilter, start: number, num: number) => Promise<DeliveryPage>;
  /**
   * How many deliveries of each given webhook a redelivery repeats, and with `withPending` how many redeliveries are
   * pending. Webhooks without any are absent.
   */
  countMatched: (request: CountRequest) => Promise<Counted>;
  /**
   * Creates redeliveries of at most `most` deliveries that match, oldest first, in one transaction. Creates none if
   * the redelivery or its webhook no longer exists, or if the webhook is inactive. Several processes may call it at
   * the same time.
   */
  redeliver: (redelivery: Redelivery, batch: RedeliveryBatch) => Promise<Redelivered>;
  /** The delivery of each webhook that changed last. Webhooks without any are absent. */
  newest: (webhookIds: readonly string[]) => Promise<ReadonlyMap<string, DeliverySummary>>;
  /** The event types of the deliveries, at most `maxEventTypes`, in their order. A store may leave out old ones. */
  eventTypes: () => Promise<readonly string[]>;
  /** How the newest ended delivery of each webhook has ended, pings included. Webhooks without any are absent. */
  lastOutcomes: (webhookIds: readonly string[]) => Promise<ReadonlyMap<string, 'delivered' | 'failed'>>;
  /** How deliveries have ended in each hour of the last 35 days. Deliveries that end are counted in the same transaction. */
  history: (request: HistoryRequest) => Promise<History>;
  /** How many pending deliveries of the webhooks are neither claimed nor pings: a deactivation would discard them. */
  pendingOf: (webhookIds: readonly string[]) => Promise<number>;
  /**
   * How many deliveries that could have been recovered this process has removed, because a webhook had too many of
   * them.
   */
  evicted: () => number;
  /**
   * The pending deliveries, claimed ones included, the bytes of their payloads, and when the oldest was created. What other processes add and
   * complete is included after about half a second, or later if there are very many.
   */
  pending: () => PendingCounts;
  /** Calls the listener when deliveries may have become free. Returns the function that unsubscribes. */
  onFree: (listener: () => void) => () => void;
};

export type PendingCounts = {
  readonly count: number;
  readonly bytes: number;
  readonly oldestAt?: number | undefined;
};

/** A delivery without its event and its attempts, which may be large. */
export type DeliverySummary = Pick<Delivery, 'state' | 'isPing'> & {
  /** When it ended, or since when it waits. */
  readonly at: number;
  /** Why the last attempt failed. */
  readonly error: string | null;
};

export type Distribution = (
  reader: Reader,
  event: WebhookEvent,
  options: AnnounceOptions,
) => readonly Delivery[];

export const maxEventTypes = 200;

export type Remembered = { readonly eventId: string; readonly at: number };

export type PublishResult = { readonly eventId: string; readonly deliveries: number };

/** An event that was published with an id, so that a repeated `publish` is recognised for 24 hours. */
export type RememberedEvent = PublishResult & { readonly publishedAt: number };

export const rememberedForMs = 24 * 3_600_000;

export function isStillRemembered({ publishedAt }: RememberedEvent, at: number): boolean {
  return at < publishedAt + rememberedForMs;
}

/** How often event ids are forgotten that were published 24 hours before. */
export const forgetEveryMs = 600_000;

/** For a store that can remember a limited number of event ids. An id that expires leaves room when it is forgotten. */
export function tooManyEventIds(max: number): ServiceError {
  const message = `Too many event ids are remembered: MAX_EVENT_IDS allows ${max}.`;
  return new ServiceError('unavailable', message, { retryAfterSeconds: forgetEveryMs / 1000 });
}

export type CountRequest = Pick<Redelivery, 'filter' | 'requestedAt'> & {
  readonly webhooks: readonly (Pick<Webhook, 'id'> & Pick<Redelivery, 'endedAfter'>)[];
  /** The count of each webhook ends here. */
  readonly most: number;
  /** Also counts pending redeliveries that were created after `endedAfter`, whatever the filter is. */
  readonly withPending?: boolean;
};

export type RedeliveryBatch = {
  readonly most: number;
  readonly at: number;
  readonly newId: Runtime['newId'];
};

export type Redelivered = {
  readonly created: number;
  /** Whether no delivery is left that matches. */
  readonly isDone: boolean;
};

export type ClaimRequest = {
  readonly at: number;
  readonly most: number;
  /** A retry is due this long after the end of the last attempt. */
  readonly retryWaitMs: number;
  /** Webhooks with the same receiver share one limit. */
  readonly receiverOf: (webhookId: string) => string;
  /**
   * How many more deliveries to the receiver this process may claim. The store subtracts the claims of other
   * processes, so the limit holds for all of them together; two claims at the same moment may exceed it.
   */
  readonly roomFor: (receiver: string) => number;
};

export type Claimed = {
  readonly deliveries: readonly Delivery[];
  /**
   * When the next delivery is due that this process can claim, or earlier if one has ended that was due then. A store that
   * returns deliveries may return `at` instead: the next claim then returns the time.
   */
  readonly nextAt: number | undefined;
};

/**
 * What becomes of a claimed delivery. The deliveries of a deleted webhook are deleted too. `needsUpdate`: the queue must
 * store nothing, because the end of the delivery changes its webhook or the failure window of the webhook, which only
 * an update can do.
 */
export type Completion =
  | { readonly delivery: Delivery; readonly needsUpdate?: boolean }
  | { readonly delivery: 'deleted'; readonly needsUpdate?: false };

/**
 * `needsUpdate`: nothing was stored and the claim still holds. The caller completes the delivery with
 * `Store.update`, which can count a failure, change the webhook and publish an event in the same transaction.
 */
export type Completed = { readonly delivery: Delivery | 'deleted'; readonly needsUpdate: boolean };

export type DeliveryWrites = {
  enqueue: (deliveries: readonly Delivery[]) => Promise<void>;
  /**
   * Stores an event whose deliveries may be many. A store may add them after the commit, for the webhooks of that moment;
   * the update then waits for them, but not longer than a second.
   */
  announce: (event: WebhookEvent, options: AnnounceOptions) => Promise<void>;
  /** Links a finished delivery to the one that repeats it. */
  markRedelivered: (id: string, as: string) => Promise<void>;
  /**
   * Ends every pending delivery of the webhook that is neither claimed nor a ping as `discarded`. A store may do so in
   * batches after the commit, but no process claims these deliveries any more. It may then discard a claimed one too
   * that has become free meanwhile, so an update that also completes deliveries of the webhook does so first, and a
   * later one ends those that were claimed before: their attempts began before the deactivation.
   */
  discardPending: (webhookId: string, at: number) => Promise<void>;
  /** Deletes every delivery of the webhook, likewise. Claims of its deliveries are lost. */
  deleteAll: (webhookId: string) => Promise<void>;
  /**
   * Replaces a claimed delivery and releases the claim. The update fails with `LostClaim` if the process no longer
   * holds it.
   */
  complete: (claimed: Delivery, delivery: Delivery) => Promise<void>;
};

/** This process no longer holds the claim, so it must not complete the delivery. */
export class LostClaim extends Error {
  constructor(id: string) {
    super(`The claim of ${id} is lost.`);
    this.name = 'LostClaim';
  }
}

/** Finished deliveries of each webhook. */
export type DeliveryRetention = {
  /** Those that need no recovery: delivered, and pings. */
  readonly history: number;
  /** Those that a redelivery can recover, and as many that were redelivered. */
  readonly recoverable: number;
};

export function keptOf(kind: FinishedKind, { history, recoverable }: DeliveryRetention): number {
  return kind === 'history' ? history : recoverable;
}

declare module '../../store/transaction.ts' {
  interface TransactionWrites {
    readonly deliveries: DeliveryWrites;
  }
}

declare module '../../store/store.ts' {
  interface StorePorts {
    readonly deliveries: DeliveryQueue;
  }
}
