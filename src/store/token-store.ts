// The port of tokens and sign-ins.
import type { Token } from '../auth/token.ts';

export type TokenStore = {
  /**
   * A token that another process has ended may be found for half a second longer. While the database is unavailable, a token is found that
   * was valid in the minute before.
   */
  find: (hash: string) => Promise<Token | undefined>;
  /** Stores a token, ends the oldest tokens of the user so that at most `max` are left, and records the time of the sign-in. */
  issue: (token: Token, max: number) => Promise<void>;
  /** The tokens of a user, ignoring case, newest first. */
  list: (username: string) => Promise<readonly Token[]>;
  end: (hash: string) => Promise<void>;
  /** When each user signed in last, by name in lower case. */
  lastSignIns: () => Promise<ReadonlyMap<string, number>>;
  /** Deletes the tokens that expire at `at` or earlier, in portions. */
  removeExpired: (at: number, stopping?: AbortSignal) => Promise<void>;
};
