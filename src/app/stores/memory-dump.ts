// The whole content of the memory store as JSON.
import type { AuditEntry } from '../../store/audit-entry.ts';
import type { JobDump } from '../../upgrades/jobs/job-store-memory.ts';
import type { UploadDump } from '../../uploads/upload-store-memory.ts';
import type { DeliveryDump } from '../../webhooks/queue/memory/queue.ts';

export type MemoryDump = {
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
  readonly cells: Readonly<Record<string, unknown>>;
  /** Oldest first. */
  readonly audit: readonly AuditEntry[];
  readonly deliveries: DeliveryDump;
  readonly jobs: JobDump;
  readonly uploads: UploadDump;
};
