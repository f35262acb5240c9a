// Connects to PostgreSQL: connection pool, timeouts, and the classification of errors.
import pg from 'pg';
import { ServiceError } from '../../errors.ts';

export type Client = Pick<pg.PoolClient, 'query'>;

export type Database = {
  /** Runs one statement. Throws `unavailable` if the database cannot be reached. */
  ask: <R extends pg.QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<R[]>;
  /** Runs the work on one connection. A connection is closed if the work fails. */
  use: <T>(work: (client: Client) => Promise<T>) => Promise<T>;
  /** Listens for notifications on a connection of its own. Only an error or the signal ends it, and the promise then rejects. */
  listen: (channel: string, onNotice: (payload: string) => void, signal: AbortSignal) => Promise<void>;
  /** Runs the work on a connection of its own without time limits. */
  usePatiently: <T>(work: (client: Client) => Promise<T>) => Promise<T>;
  close: () => Promise<void>;
};

const mostConnections = 10;

const limits = {
  connectionTimeoutMillis: 3_000,
  statement_timeout: 15_000,
  lock_timeout: 5_000,
  idle_in_transaction_session_timeout: 10_000,
  // Detects a server that disappeared without closing the connection.
  query_timeout: 20_000,
  keepAlive: true,
  keepAliveInitialDelayMillis: 5_000,
};

/** Reads bigint as number: counts and times stay below 2^53. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);

export function createDatabase(url: string, onFailure: (error: unknown) => void): Database {
  const connection = { connectionString: url, application_name: 'steward', types };
  const options = { ...connection, ...limits };
  let pool = createPool();

  function createPool(): pg.Pool {
    // `pipeline` sends queries without waiting for the results of those before.
    const created = new pg.Pool({
      ...options,
      max: mostConnections,
      idleTimeoutMillis: 60_000,
      pipeline: true,
    });
    // Without these listeners, a connection error would be an uncaught exception. The next query reports the error.
    created.on('error', () => undefined);
    created.on('connect', (client) => client.on('error', () => undefined));
    return created;
  }

  /** Replaces the pool after a connection has failed. Without this, every other broken connection would fail one more caller. */
  function replacePool(failed: pg.Pool): void {
    if (failed !== pool) return;
    pool = createPool();
    void failed.end().catch(() => undefined);
  }

  async function reporting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isBusy(error)) throw busy();
      if (!isDown(error)) throw error;
      onFailure(error);
      throw unreachable();
    }
  }

  const use = <T>(work: (client: Client) => Promise<T>): Promise<T> =>
    reporting(async () => {
      const own = pool;
      const isFull = own.totalCount === mostConnections && own.idleCount === 0;
      const client = await own.connect().catch((error: unknown) => {
        throw isFull && isDown(error) ? busy() : error;
      });
      try {
        const result = await work(client);
        client.release();
        return result;
      } catch (error) {
        client.release(true);
        const first = failures.get(client) ?? error;
        if (isDown(first)) replacePool(own);
        throw first;
      }
    });

  async function usePatiently<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ ...connection, connectionTimeoutMillis: limits.connectionTimeoutMillis });
    client.on('error', () => undefined);
    return reporting(async () => {
      try {
        await client.connect();
        return await work(client);
      } finally {
        void client.end().catch(() => undefined);
      }
    });
  }

  return {
    use,
    usePatiently,
    ask: (text, values) => use(async (client) => (await query(client, text, values)).rows as never[]),
    async listen(channel, onNotice, signal) {
      const client = new pg.Client(options);
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
        client.on('notification', ({ payload }) => onNotice(payload ?? ''));
        await client.query(`listen ${pg.escapeIdentifier(channel)}`);
        await failed;
      } finally {
        signal.removeEventListener('abort', stop);
        void client.end().catch(() => undefined);
      }
    },
    close: () => pool.end(),
  };
}

function busy(): ServiceError {
  return new ServiceError('unavailable', 'The database is busy.', { retryAfterSeconds: 5 });
}

export function unreachable(): ServiceError {
  return new ServiceError('unavailable', 'The database cannot be reached.', { retryAfterSeconds: 5 });
}

const names = new Map<string, string>();

/** The first error of each connection. In a pipeline, all later queries fail too, with errors that do not name the cause. */
const failures = new WeakMap<Client, unknown>();

/** The types of the library lack `query_timeout`. */
type TimedQuery = pg.QueryConfig<unknown[]> & { query_timeout: number };

/** A timeout for fast queries, so that an unresponsive server is detected quickly. */
export const soonMs = 3_000;

/** Runs a prepared statement: every connection plans a text once. */
export async function query<R extends pg.QueryResultRow>(
  client: Client,
  text: string,
  values: readonly unknown[] = [],
  withinMs = limits.query_timeout,
): Promise<pg.QueryResult<R>> {
  const name = names.get(text) ?? `q${names.size}`;
  names.set(text, name);
  const config: TimedQuery = { name, text, values: values as unknown[], query_timeout: withinMs };
  try {
    return await client.query<R>(config);
  } catch (error) {
    if (!failures.has(client)) failures.set(client, error);
    throw error;
  }
}

/** Runs several statements without values in one round trip; returns one result for each. */
export async function queryAll(
  client: Client,
  statements: readonly string[],
): Promise<pg.QueryResult<Record<string, unknown>>[]> {
  const config: TimedQuery = { text: statements.join(';\n'), query_timeout: limits.lock_timeout + soonMs };
  return (await client.query(config)) as unknown as pg.QueryResult<Record<string, unknown>>[];
}

const downStates = /^(08|28|53|57(?!014)|58|3D000|25006|25P03)/;
const downMessages =
  /^(Connection terminated|timeout (exceeded|expired)|Query read timeout|Client (has|was) )/;

/** Whether the database is unavailable, as opposed to a faulty query. */
function isDown(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return downStates.test(error.code ?? '');
  const { code, message, errors } = error as { code?: unknown; message?: string; errors?: unknown[] };
  // An AggregateError: the host name has several addresses, and connecting to each has failed.
  if (Array.isArray(errors)) return errors.every(isDown);
  return (typeof code === 'string' && /^E(?!RR_)[A-Z_]+$/.test(code)) || downMessages.test(message ?? '');
}

/** Whether a lock or statement timed out although the database is available. */
function isBusy(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ['55P03', '57014'].includes(error.code ?? '');
}

/** Whether PostgreSQL aborted the transaction because of a conflict with another one. It may be repeated. */
export function isCollision(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ['40001', '40P01'].includes(error.code ?? '');
}
