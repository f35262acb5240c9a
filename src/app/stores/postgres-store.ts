// The durable store: PostgreSQL, shared by any number of processes.
//
// Replicated state. PostgreSQL holds all data. Every process also holds the tables and cells in memory (src/store/copy.ts)
// and reads them from there. The row in `clock` counts the versions of this state:
//
// 1. An update locks that row, so the updates of all processes run one after another (postgres-writer.ts). With the lock,
//    the process first reads the changes since the version it knows, so every rule works on the newest state. It
//    then writes the rows with the next version, commits, applies the update to its own copy and notifies the other
//    processes.
// 2. The other processes read the rows with a higher version on every notification, and every 500 ms because a
//    notification can get lost (postgres-follower.ts, replica.ts).
// 3. A removed row stays for five minutes. A process that was disconnected for longer loads everything again.
//
// Growing data. The ports of the features read it by key or page and write it with
// single statements that lock the rows they write and nothing else. peers.ts tracks which processes are alive.
//
// Failure. If a query fails because the database is unavailable, the store remembers it and rejects all further
// calls at once until the follower reaches the database again. Reads of replicated state continue with the last
// known data. If a newer version of the program has migrated the schema past what this one can write, the store
// rejects all writes and is not ready.
import { createHash } from 'node:crypto';
import { PostgresAudit } from '../../audit/audit-store-postgres.ts';
import { createMutex, retryWhileUnavailable } from '../../lib/async.ts';
import { isUnavailable } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { createTasks } from '../../lib/tasks.ts';
import type { AuditEntry } from '../../store/audit-entry.ts';
import { createCopy } from '../../store/copy.ts';
import { type Client, Database, type StoreLogger } from '../../store/postgres/database.ts';
import { isTlsFailure } from '../../store/postgres/errors.ts';
import { migrate } from '../../store/postgres/migrations.ts';
import { Peers } from '../../store/postgres/peers.ts';
import { Replica } from '../../store/postgres/replica.ts';
import { type Secrets, createSecrets } from '../../store/postgres/secrets.ts';
import type { Table } from '../../store/state.ts';
import type { Store } from '../../store/store.ts';
import { PostgresJobs } from '../../upgrades/jobs/job-store-postgres.ts';
import { PostgresUploads } from '../../uploads/upload-store-postgres.ts';
import type { Pace } from '../../webhooks/queue/postgres/claims.ts';
import { claimsOfProcesses } from '../../webhooks/queue/postgres/claims.ts';
import { PostgresDeliveries } from '../../webhooks/queue/postgres/queue.ts';
import { webhooks } from '../../webhooks/webhook.ts';
import { Follower, pollTask } from './postgres-follower.ts';
import { Writer, type Writes } from './postgres-writer.ts';
import type { Retention } from './memory-store.ts';

export { readMigrations } from '../../store/postgres/migrations.ts';

type PostgresOptions = {
  readonly url: string;
  /** The replicated tables. */
  readonly tables: readonly Table<never>[];
  readonly migrations: readonly string[];
  readonly runtime: Pick<Runtime, 'now' | 'sleep' | 'newId' | 'followClock'>;
  readonly retention: Retention;
  /** How long the start waits for the database. Default: one try. */
  readonly patienceMs?: number;
  readonly pace?: Pace;
  /** How long other processes regard this one as alive after its last sign of life. Default: ten seconds. */
  readonly leaseMs?: number | undefined;
  readonly secretKey?: string | undefined;
  /** Decrypts only, while the key is rotated. */
  readonly previousSecretKey?: string | undefined;
  /** Logs when the database becomes unavailable and available again. */
  readonly logger?: StoreLogger | undefined;
};

const defaultLeaseMs = 10_000;
const behindAfterMs = 60_000;
const defaultPace: Pace = { claimPauseMs: 30, completeWaitMs: 10 };

/** Waits for a database that is starting, or is too slow to answer, and logs each try. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { runtime, patienceMs = 0, logger } = options;
  let reason = '';
  const open = async () => {
    const database = createDatabase(options);
    try {
      await database.requireSessions();
      await migrate(database, options.migrations);
      return await openMigrated(database, options);
    } catch (error) {
      reason = database.failure?.message ?? (error as Error).message;
      if (isTlsFailure(database.failure)) reason += `. Check sslmode and sslrootcert in STORE_URL.`;
      // The database itself logs only that it cannot be reached.
      if (!database.failure && isUnavailable(error)) logger?.warn({ reason }, 'the database is too slow');
      await database.close();
      throw isPermanent(database.failure) ? unreachableError(reason, error) : error;
    }
  };
  try {
    return await retryWhileUnavailable(open, runtime, undefined, { ms: patienceMs });
  } catch (error) {
    throw isUnavailable(error) ? unreachableError(reason, error) : error;
  }
}

function createDatabase(options: PostgresOptions): Database {
  const { url, migrations, logger, runtime } = options;
  return new Database({ url, knownSchema: migrations.length, logger, runtime });
}

/** The role or the database does not exist, or its certificate is not trusted: waiting does not help then. */
function isPermanent(failure: Error | undefined): boolean {
  return isTlsFailure(failure) || /^(28|3D)/.test((failure as { code?: string } | undefined)?.code ?? '');
}

function unreachableError(reason: string, cause: unknown): Error {
  return new Error(`the database cannot be reached: ${reason}`, { cause });
}

async function openMigrated(database: Database, options: PostgresOptions): Promise<Store> {
  const { runtime, retention, logger, pace = defaultPace, leaseMs = defaultLeaseMs } = options;
  // Each claim contains it. The last part of an id is random.
  const self = runtime.newId().slice(-12);
  const channel = await channelOf(database);
  const secrets = createSecrets({ current: options.secretKey, previous: options.previousSecretKey });
  await checkKey(database, secrets, options.secretKey);

  const copy = createCopy();
  const mutex = createMutex();
  const replica = new Replica({
    database,
    runtime,
    copy,
    tables: options.tables,
    secrets,
    onChange: () => {
      copy.notify();
      tasks.start('store secrets', encrypt);
    },
    onOtherServer: () => deliveries.claims.forgetServer(),
  });
  const peers = new Peers({ database, self, leaseMs, holdings: claimsOfProcesses });
  const audit = new PostgresAudit(database);
  const uploads = new PostgresUploads(database);
  const jobs = new PostgresJobs(database, retention.jobs);
  const deliveries: PostgresDeliveries = new PostgresDeliveries({
    database,
    reader: copy.reader,
    replica,
    refresh: () => follower.poll(),
    self,
    runtime,
    pace,
    retention: retention.deliveries,
    onError: (error) => {
      if (!isUnavailable(error)) logger?.error({ err: error }, 'deliveries could not be removed');
    },
  });
  const writer = new Writer({
    database,
    replica,
    reader: copy.reader,
    mutex,
    during: (transaction) => deliveries.pendingCount.during(transaction),
    writesOn: (client) => writesOn(client, { deliveries, jobs }),
    channel,
    self,
    onCommit: copy.notify,
  });
  let hasPollFailed = false;
  let polledAt = runtime.now();
  const tasks = createTasks(runtime, (task, error) => {
    if (isUnavailable(error)) return;
    if (task === pollTask) hasPollFailed = true;
    logger?.error({ err: error, task }, 'a background task of the store failed');
  });
  const encrypt = () => encryptSecrets(database, { replica, writer, secrets });
  const follower: Follower = new Follower({
    database,
    copy,
    replica,
    peers,
    deliveries,
    mutex,
    tasks,
    runtime,
    channel,
    self,
    onPoll: () => {
      hasPollFailed = false;
      polledAt = runtime.now();
    },
    removeOld: async (stopping) => {
      const { trimmer, unused } = deliveries;
      await Promise.all([
        jobs.removeOld(stopping),
        trimmer.trimAll(),
        unused.sweep(),
        deliveries.mergeHistory(runtime.now(), stopping),
        uploads.removeUnused(),
      ]);
    },
  });

  await database.usePatiently((client) => replica.follow(client));
  await peers.keepAlive();
  await follower.poll();
  await deliveries.pendingCount.read(database);
  await encrypt();
  deliveries.trimmer.noteAll([...copy.reader.all(webhooks)].map(({ id }) => id));
  follower.start();

  return {
    ...copy.reader,
    self,
    audit,
    deliveries,
    jobs,
    uploads,
    update: (rule) => writer.update(rule),
    isAlive: (process) => peers.isAlive(process),
    refresh: async () => {
      if (database.failure) return false;
      return follower.poll().then(
        () => true,
        () => false,
      );
    },
    isBehind: () => runtime.now() - polledAt > behindAfterMs,
    onUpdate: copy.onUpdate,
    problems: () => [
      ...database.problems,
      ...(hasPollFailed ? ['changes of other processes cannot be read from the database'] : []),
    ],
    unavailableSince: () => database.failedAt,
    async close() {
      await tasks.stop();
      if (!database.failure) await peers.leave().catch(() => undefined);
      await database.close();
    },
  };
}

type Ports = {
  readonly deliveries: PostgresDeliveries;
  readonly jobs: PostgresJobs;
};

function writesOn(client: Client, { deliveries, jobs }: Ports): Writes {
  const deliveryWrites = deliveries.writesOn(client);
  const entries: AuditEntry[] = [];
  return {
    audit: {
      record: (entry) => {
        entries.push(entry);
        return Promise.resolve();
      },
    },
    entries,
    deliveries: deliveryWrites,
    jobs: jobs.writesOn(client),
    finish: () => deliveryWrites.finish(),
    committed: () => deliveries.noteCommit(deliveryWrites),
  };
}

/** Notifications belong to the database, so the processes of each schema use a channel of their own. */
async function channelOf(database: Database): Promise<string> {
  const [current] = await database.ask<{ schema: string }>('select current_schema() as schema');
  const hash = createHash('sha256').update(current?.schema ?? '');
  return `steward_${hash.digest('hex').slice(0, 32)}`;
}

const sealContext = 'clock seal';

/** Throws if this process cannot read what others have encrypted. The seal shows which key was configured last. */
async function checkKey(database: Database, secrets: Secrets, secretKey: string | undefined): Promise<void> {
  const [clock] = await database.ask<{ seal: string | null }>('select seal from clock');
  const isCurrent = clock?.seal ? secrets.open(clock.seal, sealContext).isCurrent : false;
  if (secretKey !== undefined && !isCurrent)
    await database.write('update clock set seal = $1', [secrets.seal('', sealContext)]);
}

/**
 * Encrypts the secrets that were stored with another key, or with none, with the current one. Only processes with
 * the key that was configured last do so: without this, processes with the old and the new key would encrypt the
 * same secrets in turn.
 */
async function encryptSecrets(
  database: Database,
  { replica, writer, secrets }: { replica: Replica; writer: Writer; secrets: Secrets },
): Promise<void> {
  const outdated = replica.outdatedSecrets;
  if (outdated.length === 0 || database.isOutdated) return;
  const [clock] = await database.ask<{ seal: string | null }>('select seal from clock');
  if (!clock?.seal || !secrets.open(clock.seal, sealContext).isCurrent) return;
  await writer.update((transaction) => {
    for (const { table, key } of outdated) {
      const row: unknown = transaction.get(table, key);
      if (row) transaction.put(table, row as never);
    }
  });
}
