// The durable store, shared by any number of processes: PostgreSQL keeps everything; what is read all the time is read from a copy
// that follows it. Others' changes are seen at once where the hint of them arrives, and within half a second where it does not.
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
  /** Told when the database goes away and comes back. */
  readonly logger?: StoreLogger | undefined;
};

export type StoreLogger = Readonly<Record<'info' | 'warn' | 'error', (facts: object, text: string) => void>>;

/** How long a start waits for a database that is starting too. */
const patienceMs = 30_000;
const askAgainAfterMs = 500;

export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { records, runtime, logger } = options;
  const self = runtime.newId();
  let failure: Error | undefined;
  /** Whether its own work at the database has failed for another reason. */
  let isTroubled = false;

  const database = createDatabase(options.url, (error) => {
    if (!failure) logger?.warn({ reason: (error as Error).message }, 'the database cannot be reached');
    failure = error as Error;
  });
  function onContact(): void {
    if (failure) logger?.info({}, 'the database is back');
    failure = undefined;
    isTroubled = false;
  }

  /** A database that refuses this user, or does not exist, will do so in half a minute too. */
  const isHopeless = () => /^(28|3D)/.test((failure as { code?: string } | undefined)?.code ?? '');
  for (const deadline = runtime.now() + patienceMs; ;) {
    try {
      await migrate(database, options.migrations);
      break;
    } catch (error) {
      const isLate = isHopeless() || runtime.now() >= deadline;
      if (isUnavailable(error) && !isLate) {
        await runtime.sleep(askAgainAfterMs);
        continue;
      }
      await database.close();
      throw isUnavailable(error) ? new Error(`the database cannot be reached: ${failure?.message}`) : error;
    }
  }
  onContact();
  const [place] = await database.ask<{ schema: string }>('select current_schema() as schema');
  const channel = `steward_${createHash('sha256')
    .update(place?.schema ?? '')
    .digest('hex')
    .slice(0, 32)}`;

  const copy = createCopy();
  const secrets = createSecrets(options.secretKey);
  const replica = createReplica(copy, records, secrets);
  const peers = createPeers(database, self);
  const claims = createClaims(database, secrets, self);
  const lane = createMutex();
  const reader: Reader = {
    ...copy,
    waiting: ({ name }) => replica.unfinished(name),
    isAlive: peers.isAlive,
  };
  const writer = createWriter({ database, copy, reader, replica, claims, secrets, lane, channel, self });
  const tasks = createTasks(runtime, (task, error) => {
    if (isUnavailable(error)) return;
    isTroubled = true;
    logger?.error({ err: error, task }, 'background work of the store failed');
  });
  const follower = createFollower({
    database,
    copy,
    replica,
    peers,
    lane,
    tasks,
    runtime,
    channel,
    self,
    onContact,
    queues: records.queues,
  });

  /** While it is known to be away nobody has to wait to find that out. */
  function guarded<F extends (...args: never[]) => Promise<unknown>>(ask: F): F {
    return ((...args) => (failure ? Promise.reject(unreachable()) : ask(...args))) as F;
  }

  /** All processes must have the same key, or one would not understand what another has written. */
  async function checkKey(): Promise<void> {
    const place = 'clock seal';
    if (options.secretKey !== undefined)
      await database.ask('update clock set seal = $1 where seal is null', [secrets.seal('', place)]);
    const [clock] = await database.ask<{ seal: string | null }>('select seal from clock');
    if (clock?.seal) secrets.open(clock.seal, place);
  }

  async function encryptWhatIsPlain(): Promise<void> {
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
    if (options.secretKey !== undefined) await encryptWhatIsPlain();
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
      ...(isTroubled ? ['what others have changed cannot be read from the database'] : []),
    ],
    async close() {
      await tasks.stop();
      if (!failure) await peers.leave().catch(() => undefined);
      await database.close();
    },
  };
}
