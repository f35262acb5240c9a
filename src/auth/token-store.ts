// The port of tokens and sign-ins.
import type { AuditEntry } from '../store/audit-entry.ts';
import type { Token } from './token.ts';

export type TokenStore = {
  /**
   * A token that another process has ended may be found for half a second longer. While the database is
   * unavailable, a token is found that was valid in the minute before.
   */
  find: (hash: string) => Promise<Token | undefined>;
  /** Like `find`, but always reads the newest state. */
  findNow: (hash: string) => Promise<Token | undefined>;
  /**
   * Stores a token, ends the oldest tokens of the user so that at most `max` are left, and records the sign-in: its
   * time and its entry in the audit trail.
   */
  issue: (token: Token, max: number, entry: AuditEntry) => Promise<void>;
  /** Records the last use of a token, if there is such a token. */
  use: (hash: string, at: number) => Promise<void>;
  /** The tokens of a user, ignoring case, newest first. */
  list: (username: string) => Promise<readonly Token[]>;
  /** Records the entry only if there is such a token. */
  end: (hash: string, entry: AuditEntry | undefined) => Promise<void>;
  /** When the user signed in last, ignoring case. */
  lastSignIn: (username: string) => Promise<number | undefined>;
  /** When each user signed in last, by name in lower case. */
  lastSignIns: () => Promise<ReadonlyMap<string, number>>;
  /** Deletes the tokens that expire at `at` or earlier, in batches. */
  removeExpired: (at: number, stopping?: AbortSignal) => Promise<void>;
};

export type TokenWrites = {
  /** Ends all tokens of the user, ignoring case, except one, which stays valid with another credential id. */
  endAll: (username: string, except?: KeptToken) => Promise<void>;
  end: (hash: string) => Promise<void>;
};

export type KeptToken = Pick<Token, 'hash' | 'credentialId'>;

declare module '../store/transaction.ts' {
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface Needs {
    /** Hashes of tokens. */
    readonly tokens?: readonly string[] | undefined;
  }
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface TransactionFacts {
    readonly token: (hash: string) => Token | undefined;
  }
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface TransactionWrites {
    readonly tokens: TokenWrites;
  }
}

declare module '../store/store.ts' {
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface StorePorts {
    readonly tokens: TokenStore;
  }
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface ReadablePorts {
    readonly tokens: Pick<TokenStore, 'list' | 'lastSignIn' | 'lastSignIns'>;
  }
}
