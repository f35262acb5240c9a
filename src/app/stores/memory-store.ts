// The default store: keeps everything in the memory of this process and loses it when the process ends.
//
// Every method does its work when it is called, and nothing runs between the start and the end of that work: an `async`
// function without `await` runs at once. So an update is atomic: after its rule has ended and no claim is lost, its
// writes cannot fail.
import { MemoryAudit } from '../../audit/audit-store-memory.ts';
import type { AuditEntry } from '../../store/audit-entry.ts';
import { freeze } from '../../store/changes.ts';
import { createCopy } from '../../store/copy.ts';
import { type AnyCell, type Table, complete } from '../../store/state.ts';
import type { Store } from '../../store/store.ts';
import type { TransactionWrites } from '../../store/transaction.ts';
import { type JobDump, MemoryJobs } from '../../upgrades/jobs/job-store-memory.ts';
import { MemoryUploads, type UploadDump } from '../../uploads/upload-store-memory.ts';
import type { DeliveryRetention } from '../../webhooks/queue/delivery-queue.ts';
import { type DeliveryDump, MemoryDeliveries } from '../../webhooks/queue/memory/queue.ts';
import { clear, createChanges, createTransaction } from './changes.ts';

const self = 'memory';

/** How much finished data a store keeps. It removes the rest in the background. */
export type Retention = {
  readonly deliveries: DeliveryRetention;
  /** Jobs before the newest that keep their messages. */
  readonly jobs: number;
};

/** The whole content of the store as JSON. */
export type MemoryDump = {
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
  readonly cells: Readonly<Record<string, unknown>>;
  /** Oldest first. */
  readonly audit: readonly AuditEntry[];
  readonly deliveries: DeliveryDump;
  readonly jobs: JobDump;
  readonly uploads: UploadDump;
};

type MemoryStoreOptions = {
  readonly retention: Retention;
  /** How many event ids are remembered. */
  readonly maxEventIds: number;
  /** When it begins, for what it counts from then on. */
  readonly since?: number;
};

export type MemoryStore = Store & {
  dump: () => MemoryDump;
  /** Fills an empty store. `tables` are all tables of the dump. */
  load: (dump: MemoryDump, tables: readonly Table<never>[]) => void;
};

/** The other entries are refused and failed requests. */
const auditLimits = { successes: 10_000, others: 2_000 };

export function createMemoryStore({ retention, maxEventIds, since = 0 }: MemoryStoreOptions): MemoryStore {
  const copy = createCopy();
  const { reader } = copy;
  const deliveries = new MemoryDeliveries({
    reader,
    retention: retention.deliveries,
    maxEventIds,
    since,
  });
  const jobs = new MemoryJobs(retention.jobs);
  const audit = new MemoryAudit(auditLimits);
  const uploads = new MemoryUploads();
  const writes: TransactionWrites = {
    audit: audit.writes,
    deliveries: deliveries.writes,
    jobs: jobs.writes,
  };

  // Updates run one after another, so all of them reuse one transaction. Creating one per update costs measurable time.
  const changes = createChanges();
  const transaction = createTransaction(reader, changes);

  function commit(): void {
    for (const claimed of changes.completed.values()) deliveries.requireClaim(claimed);
    copy.apply(changes);
    for (const write of changes.writes) void write(writes);
  }

  function dump(): MemoryDump {
    return {
      ...copy.dump(),
      audit: audit.dump(),
      deliveries: deliveries.dump(),
      jobs: jobs.dump(),
      uploads: uploads.dump(),
    };
  }

  function load(from: MemoryDump, tables: readonly Table<never>[]): void {
    const loaded = createChanges();
    for (const table of tables) {
      const rows = (from.tables[table.name] ?? []).map((row) => complete(row, table.defaults) as never);
      loaded.tables.set(table, new Map(rows.map((row) => [table.keyOf(row), freeze(row)])));
    }
    for (const [name, value] of Object.entries(from.cells))
      loaded.cells.set({ name } as AnyCell, freeze(value));
    copy.apply(loaded);
    audit.load(from.audit);
    deliveries.load(from.deliveries);
    jobs.load(from.jobs);
    uploads.load(from.uploads);
  }

  return {
    ...reader,
    dump,
    load,
    self,
    audit: audit.port,
    deliveries: deliveries.queue,
    jobs: jobs.port,
    uploads: uploads.port,
    update: (rule) =>
      new Promise((resolve) => {
        try {
          const result = rule(transaction);
          commit();
          resolve(result);
        } finally {
          clear(changes);
        }
        copy.notify();
        deliveries.notify();
      }),
    isAlive: (process) => process === self,
    refresh: () => Promise.resolve(true),
    isBehind: () => false,
    onUpdate: copy.onUpdate,
    problems: () => [],
    unavailableSince: () => undefined,
    close: () => Promise.resolve(),
  };
}
