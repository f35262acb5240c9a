// Defines the tables and cells of the suites, and sample records of every port.
import type { Token } from '../../src/auth/token.ts';
import { notAudited } from '../../src/lib/audit-fields.ts';
import type { AuditEntry } from '../../src/store/audit-entry.ts';
import type { Cell, Table } from '../../src/store/state.ts';
import type { Job, StoredPlan } from '../../src/upgrades/jobs/job-table.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import { type Upload, uploads } from '../../src/uploads/upload.ts';
import { redeliveries } from '../../src/webhooks/queue/redelivery.ts';
import { failureWindows } from '../../src/webhooks/sending/failure-window.ts';
import { type Webhook, webhooks } from '../../src/webhooks/webhook.ts';

export type Row = { readonly id: string; readonly inner: { readonly n: number } };

export const rows: Table<Row> = {
  name: 'rows',
  keyOf: ({ id }) => id,
  defaults: {},
  bytesOf: ({ inner }) => inner.n,
  auditFields: ({ inner }) => ({ n: inner.n }),
};
export const others: Table<Row> = { ...rows, name: 'others' };
export const cell: Cell<{ readonly n: number }> = {
  name: 'cell',
  initial: { n: 0 },
  auditFields: ({ n }) => ({ n }),
};

export const row = (id: string, n = 0): Row => ({ id, inner: { n } });

export type Keepsake = { readonly id: string; readonly data: unknown; readonly signatureID: unknown };

/** Rows with any content and a secret. */
export const keepsakes: Table<Keepsake> = {
  name: 'keepsakes',
  keyOf: ({ id }) => id,
  defaults: { data: 'a default', signatureID: 'a default' },
  secretFields: ['signatureID'],
  auditFields: notAudited,
};
export const notebook: Cell<{ readonly data: unknown }> = {
  name: 'notebook',
  initial: { data: null },
  auditFields: notAudited,
};

export const tables: readonly Table<never>[] = [
  rows,
  others,
  keepsakes,
  webhooks,
  failureWindows,
  redeliveries,
  uploads,
];

export const webhook = (id: string, traits: Partial<Webhook> = {}): Webhook => ({
  id,
  name: `webhook ${id}`,
  hookUrl: 'https://receiver.test/',
  changeTypes: ['*'],
  service: null,
  contentType: 'application/json',
  bodyFormat: 'envelope',
  headers: [{ name: 'X-Key', value: 'a secret value' }],
  active: true,
  createdAt: 1,
  updatedAt: 2,
  deactivatedAt: null,
  deactivatedBy: null,
  deactivations: 0,
  dismissedAt: null,
  warning: null,
  signatureKey: 'whsec_now',
  previousKeys: [{ key: 'whsec_before', until: 3 }],
  ...traits,
});

export const token = (hash: string, createdAt = 0, traits: Partial<Token> = {}): Token => ({
  hash,
  id: `id of ${hash}`,
  username: 'Ann',
  createdAt,
  expires: createdAt + 1000,
  binding: null,
  address: null,
  userAgent: null,
  lastUsedAt: createdAt,
  ...traits,
});

let entries = 0;

export const auditEntry = (traits: Partial<AuditEntry> = {}): AuditEntry => ({
  id: `entry-${(entries += 1)}`,
  at: 1,
  user: 'Ann',
  role: 'administrator',
  key: null,
  address: '192.0.2.1',
  operation: 'services/createFolder',
  target: 'services',
  outcome: 'success',
  code: 200,
  count: 1,
  changes: [],
  ...traits,
});

export const upload = (itemID: string, size = 1, traits: Partial<Upload> = {}): Upload => ({
  itemID,
  itemName: `${itemID}.txt`,
  description: '',
  date: 1,
  committed: true,
  contentType: 'text/plain',
  size,
  ...traits,
});

export const job = (number: number, traits: Partial<Job> = {}): Job => ({
  id: `job-${number}`,
  number,
  operation: 'upgrade',
  kind: 'patch',
  targetId: 'v2',
  from: '1',
  to: '2',
  state: 'success',
  startAt: null,
  startedAt: 10 * number,
  ignoresWindows: false,
  hasMissedStart: false,
  endedAt: 10 * number + 5,
  startedBy: 'ann',
  runner: 'process',
  fence: 1,
  revision: 1,
  run: 1,
  runStartedAt: 10 * number,
  announced: true,
  next: 3,
  isBegun: false,
  attempts: {},
  hops: { all: [{ version: 'v2', isRelease: false }], done: 1, installedAt: { v2: 10 * number } },
  progress: {
    done: 3,
    total: 3,
    percent: 100,
    current: null,
    stepStartedAt: 10 * number,
    kinds: {},
  },
  timeline: { phases: [], components: [] },
  failedAt: null,
  workloadsDone: 1,
  workloads: 1,
  cancelledBy: null,
  reason: null,
  reverting: null,
  uploads: [],
  lastMessageAt: 0,
  messageCount: 0,
  ...traits,
});

export const plan = (jobId: string, traits: Partial<StoredPlan> = {}): StoredPlan => ({
  jobId,
  steps: [
    {
      seqNum: 0,
      id: 'launch',
      name: 'Launch',
      performedBy: 'steward',
      template: null,
      isSkipped: false,
      action: 'perform',
      workload: null,
      codes: [2168],
      subject: '',
      counts: null,
    },
  ],
  parallelism: 1,
  workloads: 1,
  hops: [
    {
      from: '1',
      to: '2',
      installs: ['v2'],
      isRelease: false,
      after: { release: { id: 'v2' } as Version, patches: [] },
    },
  ],
  ...traits,
});

/** A value from a store is frozen or a copy. */
export function tryToChange(value: object | undefined, change: Record<string, unknown>): void {
  if (value === undefined) throw new Error('There is nothing to change.');
  try {
    Object.assign(value, change);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}
