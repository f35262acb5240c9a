// Counts failed sign-ins of the last minute, per user and network and per network.

const windowMs = 60_000;
const maxPerUserAndNetwork = 10;
const maxPerNetwork = 100;

export class SignInLimit {
  readonly #failures = new Map<string, readonly number[]>();

  waitSeconds(username: string, network: string, at: number): number {
    const waits = countersOf(username, network).map(({ key, max }) => {
      const oldest = this.#recent(key, at).at(-max);
      return oldest === undefined ? 0 : Math.ceil((oldest + windowMs - at) / 1000);
    });
    return Math.max(...waits);
  }

  countFailure(username: string, network: string, at: number): void {
    for (const { key, max } of countersOf(username, network)) {
      this.#failures.set(key, [...this.#recent(key, at), at].slice(-max));
    }
  }

  removeExpired(at: number): void {
    for (const key of this.#failures.keys()) {
      if (this.#recent(key, at).length === 0) this.#failures.delete(key);
    }
  }

  #recent(key: string, at: number): readonly number[] {
    return (this.#failures.get(key) ?? []).filter((failedAt) => failedAt > at - windowMs);
  }
}

function countersOf(username: string, network: string): { key: string; max: number }[] {
  return [
    { key: `${username.toLowerCase()} ${network}`, max: maxPerUserAndNetwork },
    { key: network, max: maxPerNetwork },
  ];
}
