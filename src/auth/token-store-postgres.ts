// Tokens and sign-ins in PostgreSQL, with a small cache: a token that is used often is looked up twice a second,
// not for every request.
import { insertEntries } from '../audit/audit-store-postgres.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { AuditEntry } from '../store/audit-entry.ts';
import { freeze } from '../store/changes.ts';
import { deleteInBatches } from '../store/postgres/batches.ts';
import { type Client, type Database, query } from '../store/postgres/database.ts';
import type { TokenStore, TokenWrites } from './token-store.ts';
import type { Token } from './token.ts';

/** How long other processes may still accept an ended token. */
const freshForMs = 500;
/** While the database is unavailable, a token stays valid that was valid this long before. */
const keptDuringFailureMs = 60_000;
const maxCached = 10_000;

export type TokenRow = {
  readonly hash: string;
  readonly id: string;
  readonly username: string;
  readonly credential_id: string;
  readonly created_at: number;
  readonly expires: number;
  readonly binding: Token['binding'];
  readonly address: string | null;
  readonly user_agent: string | null;
  readonly last_used_at: number;
};

export const selectTokens =
  'select hash, id, username, credential_id, created_at, expires, binding, address, user_agent, last_used_at from tokens';

export function toToken(row: TokenRow): Token {
  return freeze({
    hash: row.hash,
    id: row.id,
    username: row.username,
    credentialId: row.credential_id,
    createdAt: row.created_at,
    expires: row.expires,
    binding: row.binding,
    address: row.address,
    userAgent: row.user_agent,
    lastUsedAt: row.last_used_at,
  });
}

type Cached = { readonly token: Token; readonly readAt: number };

export class PostgresTokens implements TokenStore {
  readonly #database: Database;
  readonly #runtime: Pick<Runtime, 'now'>;
  /** In the order of the lookups. */
  readonly #cache = new Map<string, Cached>();
  readonly #lookups = new Map<string, Promise<Token | undefined>>();

  constructor(database: Database, runtime: Pick<Runtime, 'now'>) {
    this.#database = database;
    this.#runtime = runtime;
  }

  async find(hash: string): Promise<Token | undefined> {
    const cached = this.#cache.get(hash);
    if (cached && cached.readAt > this.#runtime.now() - freshForMs) return cached.token;
    try {
      return await this.#lookUpOnce(hash);
    } catch (error) {
      const { failedAt } = this.#database;
      const known = this.#cache.get(hash);
      if (failedAt !== undefined && known && known.readAt > failedAt - keptDuringFailureMs)
        return known.token;
      throw error;
    }
  }

  findNow(hash: string): Promise<Token | undefined> {
    this.#forget(hash);
    return this.find(hash);
  }

  async issue(token: Token, max: number, entry: AuditEntry): Promise<void> {
    const ended = await this.#database.write<{ hash: string }>(
      `with issued as (
         insert into tokens (hash, username, credential_id, created_at, expires, binding, id, address, user_agent, last_used_at)
         values ($1, $2, $3, $4, $5, $6, $8, $9, $11, $12)),
       audited as (${insertEntries('$10')}),
       recorded as (
         insert into sign_ins as s (username, at) values (lower($2), $4)
         on conflict (username) do update set at = greatest(s.at, excluded.at))
       delete from tokens where hash = any(array(
         select hash from tokens where lower(username) = lower($2) and expires > $4
         order by credential_id = $3 desc, created_at desc, hash offset $7 for update skip locked))
       returning hash`,
      [
        token.hash,
        token.username,
        token.credentialId,
        token.createdAt,
        token.expires,
        JSON.stringify(token.binding),
        max - 1,
        token.id,
        token.address,
        JSON.stringify([entry]),
        token.userAgent,
        token.lastUsedAt,
      ],
    );
    for (const { hash } of ended) this.#forget(hash);
  }

  async use(hash: string, at: number): Promise<void> {
    await this.#database.write('update tokens set last_used_at = $2 where hash = $1', [hash, at]);
    const cached = this.#cache.get(hash);
    if (cached) this.#cache.set(hash, { ...cached, token: freeze({ ...cached.token, lastUsedAt: at }) });
  }

  async list(username: string): Promise<readonly Token[]> {
    const rows = await this.#database.ask<TokenRow>(
      `${selectTokens} where lower(username) = lower($1) order by created_at desc, hash`,
      [username],
    );
    return rows.map(toToken);
  }

  async end(hash: string, entry: AuditEntry | undefined): Promise<void> {
    const deletion = 'delete from tokens where hash = $1';
    try {
      if (entry)
        await this.#database.write(
          `with ended as (${deletion} returning 1) ${insertEntries('$2', 'where exists (select from ended)')}`,
          [hash, JSON.stringify([entry])],
        );
      else await this.#database.write(deletion, [hash]);
    } finally {
      // The token may have ended even if the answer of the database was lost.
      this.#forget(hash);
    }
  }

  async lastSignIn(username: string): Promise<number | undefined> {
    const [row] = await this.#database.ask<{ at: number }>(
      'select at from sign_ins where username = lower($1)',
      [username],
    );
    return row?.at;
  }

  async lastSignIns(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.ask<{ username: string; at: number }>(
      'select username, at from sign_ins',
    );
    return new Map(rows.map(({ username, at }) => [username, at]));
  }

  async removeExpired(at: number, stopping?: AbortSignal): Promise<void> {
    await deleteInBatches(
      this.#database,
      `delete from tokens where hash = any(array(
         select hash from tokens where expires <= $1 order by expires limit $2 for update skip locked))`,
      [at],
      stopping,
    );
  }

  writesOn(client: Client): TokenWrites & { committed: () => void } {
    const endedUsers = new Set<string>();
    const endedTokens = new Set<string>();
    return {
      endAll: async (username, except) => {
        endedUsers.add(username.toLowerCase());
        await Promise.all([
          query(client, 'delete from tokens where lower(username) = lower($1) and hash is distinct from $2', [
            username,
            except?.hash,
          ]),
          except &&
            query(client, 'update tokens set credential_id = $2 where hash = $1', [
              except.hash,
              except.credentialId,
            ]),
        ]);
      },
      end: async (hash) => {
        endedTokens.add(hash);
        await query(client, 'delete from tokens where hash = $1', [hash]);
      },
      committed: () => {
        for (const hash of endedTokens) this.#forget(hash);
        if (endedUsers.size === 0) return;
        // A lookup in progress may be of one of these users.
        this.#lookups.clear();
        for (const [hash, { token }] of this.#cache)
          if (endedUsers.has(token.username.toLowerCase())) this.#cache.delete(hash);
      },
    };
  }

  /** The result of a lookup in progress may be outdated, so it is not cached. */
  #forget(hash: string): void {
    this.#cache.delete(hash);
    this.#lookups.delete(hash);
  }

  #lookUpOnce(hash: string): Promise<Token | undefined> {
    const running = this.#lookups.get(hash);
    if (running) return running;
    const readAt = this.#runtime.now();
    const isCurrent = () => this.#lookups.get(hash) === lookup;
    const lookup = this.#lookUp(hash)
      .then((token) => {
        if (isCurrent()) this.#keep(hash, token && { token, readAt });
        return token;
      })
      .finally(() => {
        if (isCurrent()) this.#lookups.delete(hash);
      });
    this.#lookups.set(hash, lookup);
    return lookup;
  }

  async #lookUp(hash: string): Promise<Token | undefined> {
    const [row] = await this.#database.ask<TokenRow>(`${selectTokens} where hash = $1`, [hash]);
    return row && toToken(row);
  }

  #keep(hash: string, found: Cached | undefined): void {
    this.#cache.delete(hash);
    if (!found) return;
    this.#cache.set(hash, found);
    for (const oldest of this.#cache.keys()) {
      if (this.#cache.size <= maxCached) break;
      this.#cache.delete(oldest);
    }
  }
}
