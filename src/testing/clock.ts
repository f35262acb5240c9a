// The clock of a controlled server, which tests freeze and advance.
//
// The clock stands or runs. After a start or a reset it stands at its first moment until `begin` is called, so that
// a test that freezes it before its first request always gets the same time. A frozen clock stands until it is
// released. While the clock runs, it moves with real time, and sleepers wake when their moment comes.
//
// `advanceTo` lets the clock stand and wakes one sleeper after another, in the order of their moments. After each
// it waits until the process is idle: until no attempt is in progress and no task is about to continue.
import type { Runtime, Stopwatch } from '../lib/runtime.ts';

export type ClockState = { readonly now: number; readonly frozen: boolean };

type Sleeper = { readonly at: number; readonly wake: () => void };

/** Node's timers take no longer time. */
const maxTimerMs = 2 ** 31 - 1;

export class ControlClock {
  readonly #real: Runtime;
  /** In the order in which they began to sleep. */
  readonly #sleepers = new Set<Sleeper>();
  /** The time while the clock stands, or at `#runningSince`. */
  #time: number;
  /** The real time at which the clock began to run. Undefined: it stands. */
  #runningSince: number | undefined;
  #hasBegun = false;
  #isFrozen: boolean;
  #busy = 0;
  #onIdle: (() => void)[] = [];
  #timer = new AbortController();

  constructor(real: Runtime, { now, frozen }: ClockState) {
    this.#real = real;
    this.#time = now;
    this.#isFrozen = frozen;
  }

  readonly now = (): number =>
    this.#runningSince === undefined
      ? this.#time
      : this.#time + Math.max(0, this.#real.now() - this.#runningSince);

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
      elapsedMs: () => (this.#runningSince === undefined ? standingMs() : stopwatch.elapsedMs()),
    };
  };

  state(): ClockState {
    return { now: this.now(), frozen: this.#isFrozen };
  }

  begin(): void {
    this.#hasBegun = true;
    this.#run();
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
        this.#time = Math.max(this.#time, next.at);
        this.#wake(next);
        await this.#idle(signal);
      }
      this.#time = Math.max(this.#time, target);
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
    if (this.#isFrozen || !this.#hasBegun || this.#runningSince !== undefined) return;
    this.#runningSince = this.#real.now();
    this.#setTimer();
  }

  #stand(): void {
    this.#time = this.now();
    this.#runningSince = undefined;
    this.#timer.abort();
  }

  #setTimer(): void {
    this.#timer.abort();
    const next = this.#earliest();
    if (!next || this.#runningSince === undefined) return;
    this.#timer = new AbortController();
    const ms = Math.min(Math.max(0, next.at - this.now()), maxTimerMs);
    this.#real.sleep(ms, this.#timer.signal).then(
      () => this.#wakeDue(),
      () => undefined,
    );
  }

  #wakeDue(): void {
    for (let next = this.#earliest(); next && next.at <= this.now(); next = this.#earliest())
      this.#wake(next);
    this.#setTimer();
  }

  #wake(sleeper: Sleeper): void {
    this.#sleepers.delete(sleeper);
    sleeper.wake();
  }

  #earliest(): Sleeper | undefined {
    let earliest: Sleeper | undefined;
    for (const sleeper of this.#sleepers) if (sleeper.at < (earliest?.at ?? Infinity)) earliest = sleeper;
    return earliest;
  }
}
