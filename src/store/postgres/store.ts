// The durable store: PostgreSQL, shared by any number of processes.
//
// Replication. PostgreSQL holds all data. Every process also holds tables, cells and logs in memory (../copy.ts) and reads them from there.
// The row in `clock` counts the versions of the data:
//
// 1. An update locks that row, so the updates of all processes run one after another (writer.ts). With the lock, the process first reads
//    the changes since the version it knows, so every update works on the newest data. It then writes the rows, the names and keys of the
//    changed rows to `changes`, and the next version, commits, applies the update to its own copy and notifies the other processes.
// 2. The other processes compare the version with theirs on every notification, and every 500 ms because a notification can get lost
//    (follower.ts). If it differs, they read the rows that `changes` lists and apply them to their copies (replica.ts).
// 3. Entries in `changes` are deleted after five minutes. A process that was disconnected for longer loads everything again.
//
// Outside an update, a process can therefore read data that is about half a second old. An update always reads the newest data.
//
// Queues and archives are not copied: claims.ts, queue-statements.ts and reads.ts query them. Of a queue, only the number and
// the bytes of unfinished rows and the version of its last change are replicated. peers.ts tracks which processes are alive.
//
// Failure. If a query fails because the database is unavailable, the store remembers it and rejects all further calls at once until the
// follower reaches the database again. Reads from the copy continue with the last known data.
import { createHash } from 'node:crypto';
import { isUnavailable } from '../../errors.ts';
import { createMutex } from '../../lib/async.ts';
import { createTasks } from '../../tasks.ts';
import type { Runtime } from '../../runtime.ts';
import { createCopy } from '../copy.ts';
import type { Store } from '../store.ts';
import type { Reader, Records } from '../transaction.ts';
import { createClaims } from './claims.ts';
import { columnsOf, nameOf } from './columns.ts';
import { createDatabase, unreachable } from './database.ts';
import { createFollower } from './follower.ts';
import { migrate } from './migrations.ts';
import { createPeers } from './peers.ts';
import { createReads } from './reads.ts';
import { createReplica } from './replica.ts';
import { createSecrets, plainMark } from './secrets.ts';
import { createWriter } from './writer.ts';

export { readMigrations } from './migrations.ts';

export type PostgresOptions = {
  readonly url: string;
  readonly records: Records;
  readonly migrations: readonly string[];
  readonly runtime: Pick<Runtime, 'now' | 'sleep' | 'newId'>;
  readonly secretKey?: string | undefined;
  /** Logs when the database becomes unavailable and available again. */
  readonly logger?: StoreLogger | undefined;
};

export type StoreLogger = Readonly<Record<'info' | 'warn' | 'error', (facts: object, text: string) => void>>;

/** How long the start waits for a database that is starting at the same time. */
const connectWithinMs = 30_000;
const reconnectAfterMs = 500;

export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { records, runtime, logger } = options;
  const self = runtime.newId();
  let failure: Error | undefined;
  /** Whether a background task has failed although the database is available. */
  let hasTaskFailed = false;

  const database = createDatabase(options.url, (error) => {
    if (!failure) logger?.warn({ reason: (error as Error).message }, 'the database cannot be reached');
    failure = error as Error;
  });
  function onContact(): void {
    if (failure) logger?.info({}, 'the database can be reached again');
    failure = undefined;
    hasTaskFailed = false;
  }

  /** Whether the user or the database does not exist: waiting does not help then. */
  const isPermanent = () => /^(28|3D)/.test((failure as { code?: string } | undefined)?.code ?? '');
  for (const deadline = runtime.now() + connectWithinMs; ;) {
    try {
      await migrate(database, options.migrations);
      break;
    } catch (error) {
      const isFinal = isPermanent() || runtime.now() >= deadline;
      if (isUnavailable(error) && !isFinal) {
        await runtime.sleep(reconnectAfterMs);
        continue;
      }
      await database.close();
      throw isUnavailable(error) ? new Error(`the database cannot be reached: ${failure?.message}`) : error;
    }
  }
  onContact();
  const [current] = await database.ask<{ schema: string }>('select current_schema() as schema');
  const channel = `steward_${createHash('sha256')
    .update(current?.schema ?? '')
    .digest('hex')
    .slice(0, 32)}`;

  const copy = createCopy();
  const secrets = createSecrets(options.secretKey);
  const replica = createReplica(copy, records, secrets);
  const peers = createPeers(database, self);
  const claims = createClaims(database, secrets, self);
  const mutex = createMutex();
  const reader: Reader = {
    ...copy,
    waiting: ({ name }) => replica.unfinished(name).rows,
    waitingBytes: ({ name }) => replica.unfinished(name).bytes,
    isAlive: peers.isAlive,
  };
  const writer = createWriter({ database, copy, reader, replica, claims, secrets, mutex, channel, self });
  const tasks = createTasks(runtime, (task, error) => {
    if (isUnavailable(error)) return;
    hasTaskFailed = true;
    logger?.error({ err: error, task }, 'a background task of the store failed');
  });
  const follower = createFollower({
    database,
    copy,
    replica,
    peers,
    mutex,
    tasks,
    runtime,
    channel,
    self,
    onContact,
    queues: records.queues,
  });

  /** Rejects at once while the database is known to be unavailable. Without this, every call would wait for the connection timeout. */
  function guarded<F extends (...args: never[]) => Promise<unknown>>(ask: F): F {
    return ((...args) => (failure ? Promise.reject(unreachable()) : ask(...args))) as F;
  }

  /** Throws if this process has another secret key than the process that set up the database. All processes must share one key. */
  async function checkKey(): Promise<void> {
    const context = 'clock seal';
    if (options.secretKey !== undefined)
      await database.ask('update clock set seal = $1 where seal is null', [secrets.seal('', context)]);
    const [clock] = await database.ask<{ seal: string | null }>('select seal from clock');
    if (clock?.seal) secrets.open(clock.seal, context);
  }

  /** Encrypts secrets that were stored while no secret key was configured. */
  async function encryptPlainSecrets(): Promise<void> {
    for (const table of records.tables) {
      const columns = columnsOf(table.shape).filter(({ kind }) => kind === 'secret');
      if (columns.length === 0) continue;
      const isPlain = columns.map(({ name }) => `${name} like '${plainMark}%'`).join(' or ');
      const found = await database.ask<{ key: string }>(
        `select key from ${nameOf(table.name)} where ${isPlain}`,
      );
      if (found.length === 0) continue;
      await writer.update((transaction) => {
        for (const { key } of found) {
          const row: unknown = transaction.get(table, key);
          if (row) transaction.put(table, row as never);
        }
      });
    }
  }

  try {
    await checkKey();
    await peers.keepAlive();
    await follower.look();
    if (options.secretKey !== undefined) await encryptPlainSecrets();
  } catch (error) {
    await database.close();
    throw error;
  }
  follower.start();

  const reads = createReads(database, secrets);
  return {
    ...reader,
    self,
    update: guarded(writer.update),
    claim: guarded(claims.claim),
    find: guarded(reads.find),
    oldest: guarded(reads.oldest),
    page: guarded(reads.page),
    fetch: guarded(reads.fetch),
    refresh: () => (failure ? Promise.resolve() : follower.look().catch(() => undefined)),
    version: copy.version,
    onUpdate: copy.onUpdate,
    problems: () => [
      ...(failure ? ['the database cannot be reached'] : []),
      ...(hasTaskFailed ? ['changes of other processes cannot be read from the database'] : []),
    ],
    async close() {
      await tasks.stop();
      if (!failure) await peers.leave().catch(() => undefined);
      await database.close();
    },
  };
}
