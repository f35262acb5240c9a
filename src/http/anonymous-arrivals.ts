// The bodies of anonymous clients that are arriving: few of a network may be slow.
import type { Readable } from 'node:stream';
import { EarliestTimer } from '../lib/async.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';

/**
 * Most bodies arrive at once. A body that has not arrived after `slotAfterMs` takes a slot of its network, so signing in
 * works even in the network of an attacker.
 */
const anonymousBodies = {
  slotsPerNetwork: 4,
  slotAfterMs: 1000,
  timeoutMs: 60_000,
} as const;

type Arrival = {
  readonly body: Readable;
  readonly network: string;
  readonly startedAt: number;
  hasSlot: boolean;
};

/** After a second a body takes one of the few slots of its network. After a minute it is refused. */
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
