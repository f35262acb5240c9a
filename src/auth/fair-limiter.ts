// Limits how much work runs at once and lets client networks take turns, so that one network cannot keep the others waiting.
import { ServiceError } from '../errors.ts';

export type FairLimits = {
  readonly running: number;
  readonly waitingPerNetwork: number;
  readonly waiting: number;
};

export class FairLimiter {
  readonly #limits: FairLimits;
  /** The first network in the map is next. */
  readonly #queues = new Map<string, (() => void)[]>();
  #running = 0;
  #waiting = 0;

  constructor(limits: FairLimits) {
    this.#limits = limits;
  }

  async run<T>(network: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limits.running) this.#running += 1;
    else await this.#wait(network);
    try {
      return await work();
    } finally {
      this.#startNext();
    }
  }

  #wait(network: string): Promise<void> {
    const queue = this.#queues.get(network) ?? [];
    if (this.#waiting >= this.#limits.waiting || queue.length >= this.#limits.waitingPerNetwork)
      throw new ServiceError('too-many-requests', 'Too many passwords are being processed.', {
        retryAfterSeconds: 5,
      });
    this.#waiting += 1;
    this.#queues.set(network, queue);
    return new Promise((start) => queue.push(start));
  }

  #startNext(): void {
    const [first] = this.#queues;
    if (first === undefined) {
      this.#running -= 1;
      return;
    }
    const [network, queue] = first;
    const start = queue.shift();
    this.#waiting -= 1;
    this.#queues.delete(network);
    if (queue.length > 0) this.#queues.set(network, queue);
    start?.();
  }
}
