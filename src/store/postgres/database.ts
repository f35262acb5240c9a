// The door to PostgreSQL: connections, their limits, and what it means when a query fails.
import pg from 'pg';
import { ServiceError } from '../../errors.ts';

export type Client = Pick<pg.PoolClient, 'query'>;

export type Database = {
  /** One statement on any connection; `unavailable` when there is none. */
  ask: <R extends pg.QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<R[]>;
  /** A connection for as long as the work lasts. After a failure it is not used again. */
  use: <T>(work: (client: Client) => Promise<T>) => Promise<T>;
  /** A connection that is told what others notify; ends only with an error. */
  listen: (channel: string, onNotice: (payload: string) => void, signal: AbortSignal) => Promise<void>;
  /** A connection of its own that may take all the time it needs. */
  usePatiently: <T>(work: (client: Client) => Promise<T>) => Promise<T>;
  close: () => Promise<void>;
};

const limits = {
  connectionTimeoutMillis: 3_000,
  statement_timeout: 15_000,
  lock_timeout: 5_000,
  idle_in_transaction_session_timeout: 10_000,
  // For a server that is gone without a word.
  query_timeout: 20_000,
  keepAlive: true,
  keepAliveInitialDelayMillis: 5_000,
};

/** Counts and times fit into a number. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);

export function createDatabase(url: string, onFailure: (error: unknown) => void): Database {
  const connection = { connectionString: url, application_name: 'steward', types };
  const options = { ...connection, ...limits };
  // What is asked together on one connection is sent together.
  const pool = new pg.Pool({ ...options, max: 10, idleTimeoutMillis: 60_000, pipeline: true });
  // An idle connection has ended: the next one to be used tells.
  pool.on('error', () => undefined);
  // One that is in use tells whoever uses it; an error that nobody listens to would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));

  async function reporting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isAway(error)) throw error;
      onFailure(error);
      throw unreachable();
    }
  }

  const use = <T>(work: (client: Client) => Promise<T>): Promise<T> =>
    reporting(async () => {
      const client = await pool.connect();
      try {
        const result = await work(client);
        client.release();
        return result;
      } catch (error) {
        client.release(true);
        throw failures.get(client) ?? error;
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
      const failed = new Promise<never>((_resolve, reject) => {
        client.on('error', reject);
        client.on('end', () => reject(new Error('Connection terminated')));
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
      failed.catch(() => undefined);
      try {
        await Promise.race([client.connect(), failed]);
        client.on('notification', ({ payload }) => onNotice(payload ?? ''));
        await client.query(`listen ${pg.escapeIdentifier(channel)}`);
        await failed;
      } finally {
        void client.end().catch(() => undefined);
      }
    },
    close: () => pool.end(),
  };
}

export function unreachable(): ServiceError {
  return new ServiceError('unavailable', 'The database cannot be reached.', { retryAfterSeconds: 5 });
}

const names = new Map<string, string>();

/** What went wrong first on a connection: of what is sent together, all that comes after it fails too, and says nothing of why. */
const failures = new WeakMap<Client, unknown>();

/** What the types of the library leave out. */
type TimedQuery = pg.QueryConfig<unknown[]> & { query_timeout: number };

/** For what is quick unless the server is gone without a word: then that is known soon. */
export const soonMs = 3_000;

/** Planned once on each connection. */
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

/** Several statements that take no values, in one go; a result for each. */
export async function queryAll(
  client: Client,
  statements: readonly string[],
): Promise<pg.QueryResult<Record<string, unknown>>[]> {
  const config: TimedQuery = { text: statements.join(';\n'), query_timeout: limits.lock_timeout + soonMs };
  return (await client.query(config)) as unknown as pg.QueryResult<Record<string, unknown>>[];
}

const awayStates = /^(08|28|53|57|58|3D000|25006|25P03|55P03)/;
const awayMessages = /^(Connection terminated|timeout exceeded|Query read timeout|Client (has|was) )/;

/** Whether it is the database that fails, and not what it was asked. */
export function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return awayStates.test(error.code ?? '');
  const { code, message, errors } = error as { code?: unknown; message?: string; errors?: unknown[] };
  // Of several addresses none has answered.
  if (Array.isArray(errors)) return errors.every(isAway);
  return (typeof code === 'string' && /^E(?!RR_)[A-Z]+$/.test(code)) || awayMessages.test(message ?? '');
}

/** Two transactions stood in each other's way: the one that was given up may be tried again. */
export function isCollision(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ['40001', '40P01'].includes(error.code ?? '');
}
