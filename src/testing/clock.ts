// The clock of a controlled server, which tests freeze and advance.
//
// The clock runs or stands. While it runs, it is the time of day plus what tests have advanced it by, and sleepers
// wake when their moment comes. A frozen clock stands until it is released. After a reset it is the time of day again,
// because receivers refuse old timestamps.
//
// `advanceTo` lets the clock stand and moves it from moment to moment. At each it wakes the sleepers and waits until
// the process is idle: until no attempt is in progress and no task is about to continue. The memory store does its work
// at once, so nothing else takes time. Regular tasks sleep until
// the same moments, so a year of an idle server has about 50,000 of them.
import type { Runtime, Stopwatch } from '../lib/runtime.ts';
import type { Clock } from './control-client.ts';

/** What a snapshot keeps. `frozenAt` is null while the clock runs: it is then the time of day when it is restored. */
export type ClockDump = { readonly advancedMs: number; readonly frozenAt: number | null };

type Sleeper = { readonly at: number; readonly wake: () => void };

/** Node's timers take no longer time. */
const maxTimerMs = 2 ** 31 - 1;

export class ControlClock {
  readonly #real: Runtime;
  /** In the order in which they began to sleep. */
  readonly #sleepers = new Set<Sleeper>();
  /** By how much tests have advanced the clock. */
  #advancedMs: number;
  /** The time while the clock stands. Undefined: it runs. */
  #standsAt: number | undefined;
  #isFrozen: boolean;
  #busy = 0;
  #onIdle: (() => void)[] = [];
  #timer = new AbortController();

  constructor(real: Runtime, { advancedMs, frozenAt }: ClockDump) {
    this.#real = real;
    this.#advancedMs = advancedMs;
    this.#standsAt = frozenAt ?? undefined;
    this.#isFrozen = frozenAt !== null;
  }

  readonly now = (): number => this.#standsAt ?? this.#real.now() + this.#advancedMs;

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const stop = () => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason as Error);
      };
      const wake = () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      };
      const sleeper = { at: this.now() + ms, wake };
      if (signal?.aborted) {
        stop();
        return;
      }
      signal?.addEventListener('abort', stop);
      this.#sleepers.add(sleeper);
      this.#setTimer();
    });

  readonly yieldToEventLoop = (): Promise<void> => this.track(this.#real.yieldToEventLoop());

  /** While the clock stands, no time passes for the work, or exactly the timeout. */
  readonly startTimeout = (ms: number, onTimeout: () => void): Stopwatch => {
    let isOver = false;
    const stopwatch = this.#real.startTimeout(ms, () => {
      isOver = true;
      onTimeout();
    });
    const standingMs = () => (isOver ? ms : 0);
    return {
      stop: stopwatch.stop,
      elapsedMs: () => (this.#standsAt === undefined ? stopwatch.elapsedMs() : standingMs()),
    };
  };

  state(): Clock {
    return { now: this.now(), frozen: this.#isFrozen };
  }

  dump(): ClockDump {
    return { advancedMs: this.#advancedMs, frozenAt: this.#isFrozen ? this.now() : null };
  }

  setFrozen(isFrozen: boolean): void {
    this.#isFrozen = isFrozen;
    if (isFrozen) this.#stand();
    else this.#run();
  }

  /** `advanceTo` waits for this work, which takes real time. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.#busy += 1;
    try {
      return await work;
    } finally {
      this.#busy -= 1;
      if (this.#busy === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** Rejects if the signal is aborted before the end. */
  async advanceTo(target: number, signal: AbortSignal): Promise<void> {
    this.#stand();
    try {
      await this.#idle(signal);
      for (let next = this.#earliest(); next && next.at <= target; next = this.#earliest()) {
        this.#moveTo(next.at);
        this.#wakeDue();
        await this.#idle(signal);
      }
      this.#moveTo(target);
    } finally {
      this.#run();
    }
  }

  /** The real timer must not outlive the server. */
  stop(): void {
    this.#stand();
    this.#isFrozen = true;
  }

  async #idle(signal: AbortSignal): Promise<void> {
    do {
      if (this.#busy > 0) await this.#whenIdle(signal);
      // What has just become ready continues in this turn of the event loop, and what that causes in the next.
      for (let turn = 0; turn < 2; turn += 1) await this.#real.yieldToEventLoop();
      signal.throwIfAborted();
    } while (this.#busy > 0);
  }

  #whenIdle(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason as Error);
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop);
      this.#onIdle.push(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      });
    });
  }

  #run(): void {
    if (this.#isFrozen) return;
    this.#standsAt = undefined;
    this.#setTimer();
  }

  #stand(): void {
    this.#standsAt = this.now();
    this.#timer.abort();
  }

  #moveTo(time: number): void {
    const aheadMs = Math.max(0, time - this.now());
    this.#standsAt = this.now() + aheadMs;
    this.#advancedMs += aheadMs;
  }

  #setTimer(): void {
    if (this.#standsAt !== undefined) return;
    this.#timer.abort();
    const next = this.#earliest();
    if (!next) return;
    this.#timer = new AbortController();
    const ms = Math.min(Math.max(0, next.at - this.now()), maxTimerMs);
    this.#real.sleep(ms, this.#timer.signal).then(
      () => this.#wakeDue(),
      () => undefined,
    );
  }

  #wakeDue(): void {
    for (let next = this.#earliest(); next && next.at <= this.now(); next = this.#earliest()) {
      this.#sleepers.delete(next);
      next.wake();
    }
    this.#setTimer();
  }

  #earliest(): Sleeper | undefined {
    let earliest: Sleeper | undefined;
    for (const sleeper of this.#sleepers) if (sleeper.at < (earliest?.at ?? Infinity)) earliest = sleeper;
    return earliest;
  }
}
