// Tokens and sign-ins in memory.
import type { MemoryAudit } from '../audit/audit-store-memory.ts';
import type { AuditEntry } from '../store/audit-entry.ts';
import { freeze } from '../store/changes.ts';
import { done, runNow } from '../store/memory/run.ts';
import type { TokenStore, TokenWrites } from './token-store.ts';
import type { Token } from './token.ts';

export type TokenDump = {
  readonly list: readonly Token[];
  /** By user name in lower case. */
  readonly lastSignIns: Readonly<Record<string, number>>;
};

export class MemoryTokens {
  readonly #audit: MemoryAudit;
  readonly #tokens = new Map<string, Token>();
  /** The hashes of each user's tokens, by name in lower case. */
  readonly #hashes = new Map<string, Set<string>>();
  readonly #lastSignIns = new Map<string, number>();

  constructor(audit: MemoryAudit) {
    this.#audit = audit;
  }

  readonly port: TokenStore = {
    find: (hash) => runNow(() => this.find(hash)),
    findNow: (hash) => runNow(() => this.find(hash)),
    issue: (token, max, entry) => runNow(() => this.#issue(token, max, entry)),
    use: (hash, lastUsedAt) =>
      runNow(() => {
        const token = this.find(hash);
        if (token) this.#tokens.set(hash, freeze({ ...token, lastUsedAt }));
      }),
    list: (username) => runNow(() => this.#list(username)),
    end: (hash, entry) =>
      runNow(() => {
        if (entry && this.find(hash)) this.#audit.add(entry);
        this.#end(hash);
      }),
    lastSignIn: (username) => runNow(() => this.#lastSignIns.get(username.toLowerCase())),
    lastSignIns: () => runNow(() => new Map(this.#lastSignIns)),
    removeExpired: (at) =>
      runNow(() => {
        for (const { hash, expires } of this.#tokens.values()) if (expires <= at) this.#end(hash);
      }),
  };

  readonly writes: TokenWrites = {
    endAll: (username, except) => {
      for (const token of this.#list(username)) {
        if (token.hash !== except?.hash) this.#end(token.hash);
        else this.#tokens.set(token.hash, freeze({ ...token, credentialId: except.credentialId }));
      }
      return done;
    },
    end: (hash) => {
      this.#end(hash);
      return done;
    },
  };

  find(hash: string): Token | undefined {
    return this.#tokens.get(hash);
  }

  dump(): TokenDump {
    return { list: [...this.#tokens.values()], lastSignIns: Object.fromEntries(this.#lastSignIns) };
  }

  load({ list, lastSignIns }: TokenDump): void {
    for (const token of list) this.#put(token);
    for (const [name, at] of Object.entries(lastSignIns)) this.#lastSignIns.set(name, at);
  }

  #list(username: string): Token[] {
    const hashes = this.#hashes.get(username.toLowerCase()) ?? [];
    const tokens = [...hashes].flatMap((hash) => this.find(hash) ?? []);
    return tokens.reverse().sort((a, b) => b.createdAt - a.createdAt);
  }

  #issue(token: Token, max: number, entry: AuditEntry): void {
    this.#audit.add(entry);
    const name = token.username.toLowerCase();
    this.#put(token);
    this.#lastSignIns.set(name, Math.max(this.#lastSignIns.get(name) ?? 0, token.createdAt));
    // Expired tokens go first: they must not end tokens that are valid.
    for (const { hash, expires } of this.#list(name)) if (expires <= token.createdAt) this.#end(hash);
    for (const { hash } of this.#list(name).slice(max)) this.#end(hash);
  }

  #put(token: Token): void {
    const name = token.username.toLowerCase();
    const hashes = this.#hashes.get(name) ?? new Set();
    this.#hashes.set(name, hashes.add(token.hash));
    this.#tokens.set(token.hash, freeze(token));
  }

  #end(hash: string): void {
    const name = this.find(hash)?.username.toLowerCase() ?? '';
    const hashes = this.#hashes.get(name);
    hashes?.delete(hash);
    if (hashes?.size === 0) this.#hashes.delete(name);
    this.#tokens.delete(hash);
  }
}
