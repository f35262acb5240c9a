// Failed sign-ins within the last minute, per user and address and per address (contract 3).

const windowMs = 60_000;
const mostPerUserAndAddress = 10;
const mostPerAddress = 100;

export type SignInLimit = {
  /** Seconds until another try is worth making; 0 when it may be made now. */
  waitSeconds: (username: string, address: string, at: number) => number;
  countFailure: (username: string, address: string, at: number) => void;
  /** Drops what no longer counts. */
  forget: (at: number) => void;
};

export function createSignInLimit(): SignInLimit {
  const failures = new Map<string, number[]>();
  const keysOf = (username: string, address: string) => [
    { key: `${username.toLowerCase()} ${address}`, most: mostPerUserAndAddress },
    { key: address, most: mostPerAddress },
  ];
  const recent = (key: string, at: number) =>
    (failures.get(key) ?? []).filter((when) => when > at - windowMs);

  return {
    waitSeconds(username, address, at) {
      const waits = keysOf(username, address).map(({ key, most }) => {
        const freedBy = recent(key, at).at(-most);
        return freedBy === undefined ? 0 : Math.ceil((freedBy + windowMs - at) / 1000);
      });
      return Math.max(...waits);
    },
    countFailure(username, address, at) {
      for (const { key, most } of keysOf(username, address)) {
        failures.set(key, [...recent(key, at), at].slice(-most));
      }
    },
    forget(at) {
      for (const key of failures.keys()) {
        if (recent(key, at).length === 0) failures.delete(key);
      }
    },
  };
}
