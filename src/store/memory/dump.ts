// The whole content of the memory store as JSON.
import type { AuditEntry } from '../../audit/entry.ts';
import type { Token } from '../../auth/token.ts';
import type { Job, StoredPlan } from '../../upgrades/job-table.ts';
import type { Message } from '../../upgrades/messages.ts';
import type { Upload } from '../../uploads/upload.ts';
import type { Delivery } from '../../webhooks/delivery.ts';
import type { FailureWindow } from '../../webhooks/failure-window.ts';
import type { RememberedEvent } from '../../webhooks/idempotency.ts';

export type MemoryDump = {
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
  readonly cells: Readonly<Record<string, unknown>>;
  /** Oldest first. */
  readonly audit: readonly AuditEntry[];
  readonly deliveries: DeliveryDump;
  readonly jobs: JobDump;
  readonly tokens: TokenDump;
  readonly uploads: readonly UploadDump[];
};

export type DeliveryDump = DeliveryListDump & {
  readonly events: readonly RememberedEvent[];
  readonly failureWindows: Readonly<Record<string, FailureWindow>>;
};

export type DeliveryListDump = {
  /** Oldest first. */
  readonly list: readonly Delivery[];
  /** Ids in the order in which the deliveries of each kind finished. */
  readonly finished: readonly string[];
  /** Webhooks in the order of their turns. */
  readonly turns: readonly string[];
};

export type JobDump = {
  readonly archived: readonly Job[];
  readonly plans: readonly StoredPlan[];
  readonly messages: Readonly<Record<string, readonly Message[]>>;
};

export type TokenDump = {
  readonly list: readonly Token[];
  /** By user name in lower case. */
  readonly lastSignIns: Readonly<Record<string, number>>;
};

export type UploadDump = { readonly upload: Upload; readonly base64: string };
