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

const mostConnections = 10;

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
  let pool = createPool();

  function createPool(): pg.Pool {
    // What is asked together on one connection is sent together.
    const made = new pg.Pool({ ...options, max: mostConnections, idleTimeoutMillis: 60_000, pipeline: true });
    // An idle connection has ended: the next one to be used tells.
    made.on('error', () => undefined);
    // One that is in use tells whoever uses it; an error that nobody listens to would end everything.
    made.on('connect', (client) => client.on('error', () => undefined));
    return made;
  }

  /** After a connection has failed the others are not tried one by one. */
  function renew(failed: pg.Pool): void {
    if (failed !== pool) return;
    pool = createPool();
    void failed.end().catch(() => undefined);
  }

  async function reporting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isBusy(error)) throw busy();
      if (!isAway(error)) throw error;
      onFailure(error);
      throw unreachable();
    }
  }

  const use = <T>(work: (client: Client) => Promise<T>): Promise<T> =>
    reporting(async () => {
      const own = pool;
      const isFull = own.totalCount === mostConnections && own.idleCount === 0;
      const client = await own.connect().catch((error: unknown) => {
        throw isFull && isAway(error) ? busy() : error;
      });
      try {
        const result = await work(client);
        client.release();
        return result;
      } catch (error) {
        client.release(true);
        const first = failures.get(client) ?? error;
        if (isAway(first)) renew(own);
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

const awayStates = /^(08|28|53|57(?!014)|58|3D000|25006|25P03)/;
const awayMessages =
  /^(Connection terminated|timeout (exceeded|expired)|Query read timeout|Client (has|was) )/;

/** Whether it is the database that fails, and not what it was asked. */
function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return awayStates.test(error.code ?? '');
  const { code, message, errors } = error as { code?: unknown; message?: string; errors?: unknown[] };
  // Of several addresses none has answered.
  if (Array.isArray(errors)) return errors.every(isAway);
  return (typeof code === 'string' && /^E(?!RR_)[A-Z_]+$/.test(code)) || awayMessages.test(message ?? '');
}

/** Whether it could not be done in time, though the database is there. */
function isBusy(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ['55P03', '57014'].includes(error.code ?? '');
}

/** Two transactions stood in each other's way: the one that was given up may be tried again. */
export function isCollision(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ['40001', '40P01'].includes(error.code ?? '');
}
