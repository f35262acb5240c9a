// Limits the failed sign-ins of the last minute: per user and subnet, per user and network, per subnet, and per
// network. There is no limit per user alone: with one, strangers could lock a user out. One client may own an IPv6 /64,
// and one organization a /48 or an IPv4 /24, so these count together.
import { networkOf, subnetOf } from '../lib/address.ts';

const windowMs = 60_000;
const maxPerUserAndSubnet = 10;
const maxPerUserAndNetwork = 30;
const maxPerSubnet = 100;
const maxPerNetwork = 300;

export type SignInAttempt = { readonly username: string; readonly address: string; readonly at: number };

/** The times of attempts, by counter. */
export type SignInDump = Readonly<Record<string, readonly number[]>>;

export class SignInLimit {
  /** The times of failed attempts and of attempts in progress. */
  readonly #attempts = new Map<string, readonly number[]>();

  /** 0: the attempt may start. */
  waitSeconds({ username, address, at }: SignInAttempt): number {
    const waits = countersOf(username, address).map(({ key, max }) => {
      const oldest = this.#recent(key, at).at(-max);
      return oldest === undefined ? 0 : Math.ceil((oldest + windowMs - at) / 1000);
    });
    return Math.max(...waits);
  }

  /**
   * Without counting an attempt before its result is known, more attempts at once could fail than one after the
   * other.
   */
  start({ username, address, at }: SignInAttempt): void {
    for (const { key } of countersOf(username, address)) {
      this.#attempts.set(key, [...this.#recent(key, at), at]);
    }
  }

  /** Takes back the count of an attempt that did not fail. */
  forget({ username, address, at }: SignInAttempt): void {
    for (const { key } of countersOf(username, address)) {
      const times = [...(this.#attempts.get(key) ?? [])];
      const index = times.indexOf(at);
      if (index >= 0) times.splice(index, 1);
      if (times.length > 0) this.#attempts.set(key, times);
      else this.#attempts.delete(key);
    }
  }

  removeExpired(at: number): void {
    for (const key of this.#attempts.keys()) {
      if (this.#recent(key, at).length === 0) this.#attempts.delete(key);
    }
  }

  dump(): SignInDump {
    return Object.fromEntries(this.#attempts);
  }

  load(dump: SignInDump): void {
    for (const [key, times] of Object.entries(dump)) this.#attempts.set(key, times);
  }

  #recent(key: string, at: number): readonly number[] {
    return (this.#attempts.get(key) ?? []).filter((startedAt) => startedAt > at - windowMs);
  }
}

function countersOf(username: string, address: string): { key: string; max: number }[] {
  const name = username.toLowerCase();
  const subnet = subnetOf(address);
  const network = networkOf(address);
  return [
    { key: `user ${name} ${subnet}`, max: maxPerUserAndSubnet },
    { key: `user-network ${name} ${network}`, max: maxPerUserAndNetwork },
    { key: `subnet ${subnet}`, max: maxPerSubnet },
    { key: `network ${network}`, max: maxPerNetwork },
  ];
}
