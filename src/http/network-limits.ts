// Limits of all bodies and of those of one client network: their bytes, and how many may arrive slowly.
import type { Readable } from 'node:stream';
import { EarliestTimer } from '../lib/async.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { anonymousBodies } from './limits.ts';

/** Counts bytes in all and by network. Signed-in callers count as one network. */
export class ByteBudget {
  readonly #maxBytes: number;
  readonly #maxBytesPerNetwork: number;
  readonly #byNetwork = new Map<string, number>();
  #total = 0;

  constructor(maxBytes: number, maxBytesPerNetwork: number) {
    this.#maxBytes = maxBytes;
    this.#maxBytesPerNetwork = maxBytesPerNetwork;
  }

  /** Counts the bytes in any case, because they have arrived. Returns false if they are too many. */
  take(network: string, bytes: number): boolean {
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) + bytes;
    this.#byNetwork.set(network, ofNetwork);
    this.#total += bytes;
    return this.#total <= this.#maxBytes && ofNetwork <= this.#maxBytesPerNetwork;
  }

  give(network: string, bytes: number): void {
    if (bytes === 0) return;
    this.#total -= bytes;
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) - bytes;
    if (ofNetwork > 0) this.#byNetwork.set(network, ofNetwork);
    else this.#byNetwork.delete(network);
  }
}

type Arrival = {
  readonly body: Readable;
  readonly network: string;
  readonly startedAt: number;
  hasSlot: boolean;
};

/**
 * The bodies of anonymous clients that are arriving. After a second a body takes one of the few slots of its network.
 * After a minute it is refused.
 */
export class AnonymousArrivals {
  readonly #runtime: Pick<Runtime, 'now' | 'sleep'>;
  /** In the order of their start. */
  readonly #arrivals = new Set<Arrival>();
  readonly #slotsTaken = new Map<string, number>();
  readonly #timer: EarliestTimer;

  constructor(runtime: Pick<Runtime, 'now' | 'sleep'>) {
    this.#runtime = runtime;
    this.#timer = new EarliestTimer(runtime, () => this.#check());
  }

  add(body: Readable, network: string): void {
    const arrival = { body, network, startedAt: this.#runtime.now(), hasSlot: false };
    this.#arrivals.add(arrival);
    this.#timer.fireAt(arrival.startedAt + anonymousBodies.slotAfterMs);
    body.once('close', () => this.#remove(arrival));
  }

  stop(): void {
    this.#timer.cancel();
  }

  #remove(arrival: Arrival): void {
    if (!this.#arrivals.delete(arrival) || !arrival.hasSlot) return;
    const taken = (this.#slotsTaken.get(arrival.network) ?? 0) - 1;
    if (taken > 0) this.#slotsTaken.set(arrival.network, taken);
    else this.#slotsTaken.delete(arrival.network);
  }

  #check(): void {
    const now = this.#runtime.now();
    for (const arrival of this.#arrivals) {
      const age = now - arrival.startedAt;
      if (age < anonymousBodies.slotAfterMs) break;
      if (age >= anonymousBodies.timeoutMs) this.#refuse(arrival, late());
      else if (!arrival.hasSlot && !this.#takeSlot(arrival)) this.#refuse(arrival, tooManyBodies());
    }
    for (const { startedAt, hasSlot } of this.#arrivals) {
      this.#timer.fireAt(startedAt + (hasSlot ? anonymousBodies.timeoutMs : anonymousBodies.slotAfterMs));
      if (!hasSlot) break;
    }
  }

  #takeSlot(arrival: Arrival): boolean {
    const taken = this.#slotsTaken.get(arrival.network) ?? 0;
    arrival.hasSlot = taken < anonymousBodies.slotsPerNetwork;
    if (arrival.hasSlot) this.#slotsTaken.set(arrival.network, taken + 1);
    return arrival.hasSlot;
  }

  #refuse(arrival: Arrival, error: ServiceError): void {
    this.#remove(arrival);
    arrival.body.destroy(error);
  }
}

export function tooManyBodies(): ServiceError {
  return new ServiceError('unavailable', 'Too many request bodies are being read.', { retryAfterSeconds: 5 });
}

function late(): ServiceError {
  return new ServiceError('invalid', 'The request body did not arrive in time.');
}
