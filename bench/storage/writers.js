// Writers: loops that send one write after another to a process and record when each was accepted.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { percentile, perSecond } from '../kit.js';

const retryAfterMs = 20;
const payload = JSON.stringify({
  folderName: 'Planning',
  serviceName: 'Parcels',
  type: 'Map',
  note: 'n'.repeat(128),
});

let settings = 0;

const kinds = {
  publish: () => [
    'services/webhooks/publish',
    { changeType: 'ServiceUpdated', payload, eventId: randomUUID() },
  ],
  /** An administrative write: every process must learn it. */
  settings: () => [
    'services/webhooks/settings',
    { numberOfFailures: String(9_000 + ((settings += 1) % 1_000)) },
  ],
};

export class Writers {
  #writes = [];
  #loops = [];
  #isStopping = false;

  start(kind, server, count) {
    for (let n = 0; n < count; n += 1) this.#loops.push(this.#loop(kind, server));
    return this;
  }

  async #loop(kind, server) {
    while (!this.#isStopping) {
      const [path, form] = kinds[kind]();
      const startedAt = performance.now();
      const { status } = await server.ask('POST', `/admin/${path}`, form).catch(() => ({ status: 0 }));
      this.#writes.push({ kind, server, status, startedAt, endedAt: performance.now() });
      if (status !== 200) await pause(retryAfterMs);
    }
  }

  /** Resolves when the answers to all writes have arrived. */
  async stop() {
    this.#isStopping = true;
    await Promise.all(this.#loops);
  }

  /** The writes that ended between two times. */
  between(from, to, { kind, server } = {}) {
    const ended = this.#writes.filter(
      (write) =>
        write.endedAt >= from &&
        write.endedAt < to &&
        (kind === undefined || write.kind === kind) &&
        (server === undefined || write.server === server),
    );
    return new Writes(ended, from, to);
  }
}

class Writes {
  #all;
  #accepted;
  #from;
  #to;

  constructor(writes, from, to) {
    this.#all = writes;
    this.#accepted = writes.filter(({ status }) => status === 200);
    this.#from = from;
    this.#to = to;
  }

  get rate() {
    return perSecond(this.#accepted.length, this.#to - this.#from);
  }

  get accepted() {
    return this.#accepted.length;
  }

  get refused() {
    return this.#all.length - this.#accepted.length;
  }

  /** The duration that `share` of all accepted writes did not exceed. */
  duration(share) {
    const durations = this.#accepted.map(({ startedAt, endedAt }) => endedAt - startedAt);
    return percentile(durations, share) ?? Infinity;
  }

  /** The longest time between two accepted writes. */
  get longestPause() {
    const times = [this.#from, ...this.#accepted.map(({ endedAt }) => endedAt), this.#to];
    return times.reduce((longest, time, n) => Math.max(longest, n === 0 ? 0 : time - times[n - 1]), 0);
  }
}
