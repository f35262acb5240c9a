// Connects to PostgreSQL: connection pool, settings and timeouts.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type ServiceError, databaseUnreachable } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import {
  busy,
  isBusy,
  isDown,
  isRefused,
  isWaitTooLong,
  outdatedProgram,
  programProblem,
  shortageOf,
} from './errors.ts';
import { type Limits, noLimits, readLimits, setTimeouts } from './limits.ts';

export type Client = Pick<pg.PoolClient, 'query'>;

/** Detects a server that disappeared without closing the connection. */
const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 5_000 };

/**
 * The settings of every connection, whatever the defaults of the database are. They are no parameters of the
 * connection, because PgBouncer refuses those.
 *
 * Nearly every statement finds its rows through an index in the order that it needs. The planner must not read a whole
 * table, or sort, because a table was small or had no statistics at that moment. Measured: a claim after a bulk load
 * that sorts takes a minute, searches with bitmaps take up to 25 times as long, and a delivery that reads whole tables
 * costs 8 to 22 % more. What it cannot avoid then seems so expensive that it would compile the statement, which takes
 * longer than to run it.
 */
const settings = [
  `set default_transaction_isolation = 'read committed'`,
  'set synchronous_commit = on',
  'set jit = off',
  'set enable_seqscan = off',
  'set enable_bitmapscan = off',
  'set enable_sort = off',
];

/** Reads bigint as number: counts and times stay below 2^53. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);

type DatabaseOptions = {
  readonly url: string;
  /** The number of the newest migration that this program knows. */
  readonly knownSchema: number;
  /** Logs when the database becomes unavailable and available again. */
  readonly logger: StoreLogger | undefined;
  readonly runtime: Pick<Runtime, 'now'>;
};

export type StoreLogger = Readonly<Record<'info' | 'warn' | 'error', (facts: object, text: string) => void>>;

const clientConfig = { application_name: 'steward', types, ...keepAlive };

const pooledProblem =
  'STORE_URL leads to a connection pooler in transaction mode. Use its session mode, or connect to PostgreSQL itself.';

/**
 * The database, and whether it can be used. After a query has failed because the database is unavailable, every
 * call is rejected at once until `probe` succeeds: without this, each call would wait for the connection timeout.
 */
export class Database {
  readonly #options: DatabaseOptions;
  readonly #limits: Limits;
  readonly #connection: pg.ClientConfig;
  #pool: pg.Pool;
  #failure: Error | undefined;
  #failedAt: number | undefined;
  #oldestWriter = 0;
  #isClosed = false;
  /** How long the last probe took, which is little more than the way to the database and back. */
  probeMs = 0;
  /** How many connections the process opens at most, besides the one that listens. */
  readonly #maxConnections: number;
  /** How many connections each pool has. */
  readonly #established = new WeakMap<pg.Pool, number>();
  /** Until when the pool opens no connection, by the clock of the machine. */
  #refusedUntil = 0;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    const { url: connectionString, limits, maxConnections } = readLimits(options.url);
    this.#limits = limits;
    this.#maxConnections = maxConnections;
    const connectionTimeoutMillis = 1000 * limits.connect_timeout;
    const { query_timeout } = limits;
    this.#connection = { connectionString, connectionTimeoutMillis, query_timeout, ...clientConfig };
    requireFiles(this.#connection);
    this.#pool = this.#createPool();
  }

  /** Why the database is unavailable; undefined while it is available. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  get failedAt(): number | undefined {
    return this.#failedAt;
  }

  /** The timeout of fast queries, in which an unresponsive server is detected quickly. */
  get soonMs(): number {
    return this.#limits.query_timeout / 2;
  }

  /** The reasons why this program cannot use the database. */
  get problems(): readonly string[] {
    return [
      ...(this.#failure ? [['the database cannot be reached', ...shortageOf(this.#failure)].join(': ')] : []),
      ...(this.isOutdated ? [programProblem] : []),
    ];
  }

  get knownSchema(): number {
    return this.#options.knownSchema;
  }

  /** Whether the schema has a contracting migration that this program does not know. */
  get isOutdated(): boolean {
    return this.#oldestWriter > this.#options.knownSchema;
  }

  /** Records the newest contracting migration of the schema. */
  noteSchema(oldestWriter: number): void {
    this.#oldestWriter = oldestWriter;
  }

  requireWritable(): void {
    if (this.isOutdated) throw outdatedProgram();
  }

  /** Why a statement found the state outdated that was read just before. */
  changedMeanwhile(): ServiceError {
    return this.isOutdated ? outdatedProgram() : busy();
  }

  /** Runs one statement that reads. */
  ask<R extends pg.QueryResultRow>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<R[]> {
    return this.use(async (client) => (await query<R>(client, text, values, options)).rows);
  }

  /** Runs one statement that writes. */
  async write<R extends pg.QueryResultRow>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<R[]> {
    this.requireWritable();
    return this.ask<R>(text, values, options);
  }

  /**
   * Runs the work on one connection. The connection is closed if the work fails. After `close`, the database counts as
   * unavailable for work that nobody waits for.
   */
  use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    return this.#failure || this.#isClosed ? Promise.reject(databaseUnreachable()) : this.#use(work);
  }

  /** Tries the work also while the database is unavailable, and makes it available if it succeeds. */
  async probe<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const result = await this.#use(async (client) => {
      if (this.#failure) await requireCommits(client, this.soonMs);
      const started = performance.now();
      const found = await work(client);
      this.probeMs = performance.now() - started;
      return found;
    });
    if (this.#failure) this.#options.logger?.info({}, 'the database can be reached again');
    this.#failure = undefined;
    this.#failedAt = undefined;
    return result;
  }

  /** Runs the work on a connection of its own, without time limits for queries. */
  usePatiently<T>(work: (client: Client) => Promise<T>): Promise<T> {
    return this.#connectAlone(async (client) => {
      await client.query([...settings, ...setTimeouts(noLimits)].join('; '));
      return work(client);
    }, noLimits.query_timeout);
  }

  /**
   * Throws if a pooler gives the statements of one connection to several sessions of the server: prepared statements
   * and settings belong to a session.
   */
  async requireSessions(): Promise<void> {
    const mark = randomUUID();
    const found = await this.#connectAlone((one) =>
      this.#connectAlone(async (other) => {
        await one.query(`set steward.session = '${mark}'`);
        const { rows } = await other.query<{ found: string | null }>(
          `select current_setting('steward.session', true) as found`,
        );
        return rows[0]?.found ?? '';
      }),
    );
    if (found === mark) throw new Error(pooledProblem);
  }

  #connectAlone<T>(
    work: (client: Client) => Promise<T>,
    query_timeout = this.#limits.query_timeout,
  ): Promise<T> {
    const client = new pg.Client({ ...this.#connection, query_timeout });
    client.on('error', () => undefined);
    return this.#reporting(async () => {
      try {
        await client.connect();
        return await work(client);
      } finally {
        void client.end().catch(() => undefined);
      }
    });
  }

  /**
   * Listens for notifications on a connection of its own. Only an error or the signal ends it, and the promise then
   * rejects.
   */
  async listen(channel: string, onNotice: (payload: string) => void, signal: AbortSignal): Promise<void> {
    const client = new pg.Client(this.#connection);
    let stop: () => void = () => undefined;
    const failed = new Promise<never>((_resolve, reject) => {
      client.on('error', reject);
      client.on('end', () => reject(new Error('Connection terminated')));
      stop = () => reject(signal.reason as Error);
      signal.addEventListener('abort', stop);
    });
    failed.catch(() => undefined);
    try {
      await Promise.race([client.connect(), failed]);
      await client.query(setTimeouts(this.#limits).join('; '));
      client.on('notification', ({ payload }) => onNotice(payload ?? ''));
      await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      await failed;
    } finally {
      signal.removeEventListener('abort', stop);
      void client.end().catch(() => undefined);
    }
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#pool.end();
  }

  #createPool(): pg.Pool {
    // `pipeline` sends queries without waiting for the results of those before.
    const pool = new pg.Pool({
      ...this.#connection,
      max: this.#maxConnections,
      idleTimeoutMillis: 60_000,
      pipeline: true,
    });
    // Without these listeners, a connection error would be an uncaught exception. The next query reports the error.
    pool.on('error', () => undefined);
    const count = (by: number) => this.#established.set(pool, (this.#established.get(pool) ?? 0) + by);
    pool.on('remove', () => count(-1));
    pool.on('connect', (client) => {
      count(1);
      client.on('error', (error) => noteFailure(client, error));
      client.query([...settings, ...setTimeouts(this.#limits)].join('; ')).catch(() => undefined);
    });
    return pool;
  }

  /**
   * Replaces the pool after a connection has failed. Without this, every other broken connection would fail one
   * more caller.
   */
  #replacePool(failed: pg.Pool): void {
    if (failed !== this.#pool) return;
    this.#pool = this.#createPool();
    void failed.end().catch(() => undefined);
  }

  #use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    return this.#reporting(async () => {
      const pool = this.#pool;
      const client = await this.#connect(pool);
      try {
        const result = await work(client);
        client.release();
        return result;
      } catch (error) {
        client.release(true);
        const first = failures.get(client) ?? error;
        if (isDown(first)) this.#replacePool(pool);
        throw first;
      }
    });
  }

  /**
   * If the server refuses another connection, a process with connections goes on with those: for a moment the pool
   * opens no more, so that callers wait for one that is free.
   */
  async #connect(pool: pg.Pool): Promise<pg.PoolClient> {
    if (performance.now() >= this.#refusedUntil) pool.options.max = this.#maxConnections;
    try {
      return await pool.connect();
    } catch (error) {
      if (isWaitTooLong(error)) throw busy();
      const established = this.#established.get(pool) ?? 0;
      if (!isRefused(error) || established === 0) throw error;
      pool.options.max = established;
      this.#refusedUntil = performance.now() + refusedPauseMs;
      return this.#connect(pool);
    }
  }

  async #reporting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isBusy(error)) throw busy(error);
      if (!isDown(error)) throw error;
      const failure = error as Error;
      if (!this.#failure)
        this.#options.logger?.warn({ reason: failure.message }, 'the database cannot be reached');
      this.#failure = failure;
      this.#failedAt ??= this.#options.runtime.now();
      throw databaseUnreachable();
    }
  }
}

/** Throws if a file cannot be read that the address names, such as that of `sslrootcert`. */
function requireFiles(connection: pg.ClientConfig): void {
  try {
    // Reads the files, and connects later.
    new pg.Client(connection);
  } catch (error) {
    const { path, code } = error as NodeJS.ErrnoException;
    if (path === undefined) throw error;
    throw new Error(`STORE_URL names the file ${path}, which cannot be read: ${code}.`, { cause: error });
  }
}

/**
 * Throws while a commit waits for a synchronous replica that does not answer. The session of such a commit stays also
 * after its client has given up, so another one would only fill the server.
 */
async function requireCommits(client: Client, withinMs: number): Promise<void> {
  const hungAfterMs = 3_000;
  const { rowCount } = await query(
    client,
    `select from pg_stat_activity where application_name = '${clientConfig.application_name}' and wait_event = 'SyncRep'
       and query_start < clock_timestamp() - ${hungAfterMs} * interval '1 ms' limit 1`,
    [],
    { withinMs },
  );
  if (rowCount) throw databaseUnreachable();
}

/** How long a process opens no connection after the server has refused one. */
const refusedPauseMs = 1_000;

const names = new Map<string, string>();

/**
 * The first error of each connection. In a pipeline, all later queries fail too, with errors that do not name the
 * cause.
 */
const failures = new WeakMap<Client, unknown>();

/** The types of the library lack `query_timeout`. */
type TimedQuery = pg.QueryConfig<unknown[]> & { query_timeout: number | undefined };

/** A text of many shapes, such as a search, must not be prepared: every connection would keep every shape. */
export type QueryOptions = { readonly withinMs?: number; readonly isPrepared?: boolean };

/** Runs a prepared statement by default: every connection plans a text once. */
export async function query<R extends pg.QueryResultRow>(
  client: Client,
  text: string,
  values: readonly unknown[] = [],
  { withinMs, isPrepared = true }: QueryOptions = {},
): Promise<pg.QueryResult<R>> {
  const config: TimedQuery = { text, values: values as unknown[], query_timeout: withinMs };
  if (isPrepared) config.name = nameOf(text);
  try {
    return await client.query<R>(config);
  } catch (error) {
    noteFailure(client, error);
    throw error;
  }
}

/** How many rows `deleteInBatches` deletes in one transaction. */
const batch = 1_000;

/**
 * Deletes many rows in small transactions, so that no other write waits for long, and none exceeds the time limit of
 * statements. The last parameter of the statement is the number of rows to delete at most. It finds them with `=
 * any(array(select …))`: the planner reads that as few rows and uses the index, whereas a join might read the whole
 * table for every batch. `stopping` ends it between two batches.
 */
export async function deleteInBatches(
  database: Database,
  statement: string,
  values: readonly unknown[],
  stopping?: AbortSignal,
): Promise<void> {
  const counted = `with deleted as (${statement} returning 1) select count(*) from deleted`;
  while (stopping?.aborted !== true) {
    const [row] = await database.write<{ count: number }>(counted, [...values, batch]);
    if ((row?.count ?? 0) < batch) return;
  }
}

function nameOf(text: string): string {
  const name = names.get(text) ?? `q${names.size}`;
  names.set(text, name);
  return name;
}

function noteFailure(client: Client, error: unknown): void {
  if (!failures.has(client)) failures.set(client, error);
}
