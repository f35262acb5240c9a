// The port of tokens and sign-ins. A token that another process has ended is found for at most half a second longer.
import type { Token } from '../auth/token.ts';

export type TokenStore = {
  /** A PostgreSQL store keeps a token in a bounded cache for half a second, and for longer while the database is unavailable. */
  find: (hash: string) => Promise<Token | undefined>;
  /** Stores a token, ends the oldest tokens of the user so that at most `max` are left, and records the time of the sign-in. */
  issue: (token: Token, max: number) => Promise<void>;
  /** The tokens of a user, ignoring case, newest first. */
  list: (username: string) => Promise<readonly Token[]>;
  end: (hash: string) => Promise<void>;
  /** When each user signed in last, by name in lower case. */
  lastSignIns: () => Promise<ReadonlyMap<string, number>>;
  /** Deletes the tokens that expire at `at` or earlier, in portions. */
  removeExpired: (at: number) => Promise<void>;
};
