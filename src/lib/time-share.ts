// Limits how often something runs that may take long: to a share of the time.

const maxShare = 1 / 50;
/** What takes less is not limited. */
const longMs = 50;
const maxPauseMs = 10_000;

export class TimeShare {
  /** By the clock of the machine, because it limits what the work costs. */
  #nextAt = 0;

  isAllowed(): boolean {
    return performance.now() >= this.#nextAt;
  }

  /**
   * Runs the work. `isAllowed` is false for a while if it took long, also if it failed. The time that anything takes on
   * the way to a database does not count.
   */
  async run<T>(work: () => Promise<T>, onTheWayMs = 0): Promise<T> {
    const started = performance.now();
    try {
      return await work();
    } finally {
      const ended = performance.now();
      const tookMs = ended - started - onTheWayMs;
      this.#nextAt = tookMs > longMs ? ended + Math.min(maxPauseMs, tookMs / maxShare) : ended;
    }
  }
}
