// Lists the tables of the replicated state.
import { keys } from '../auth/key.ts';
import { tokens } from '../auth/token.ts';
import { users } from '../auth/user.ts';
import { folders, services } from '../catalog/catalog.ts';
import type { Table } from '../store/state.ts';
import { uploads } from '../uploads/upload.ts';
import { redeliveries } from '../webhooks/queue/redelivery.ts';
import { failureWindows } from '../webhooks/sending/failure-window.ts';
import { webhooks } from '../webhooks/webhook.ts';

export const tables: readonly Table<never>[] = [
  users,
  keys,
  tokens,
  folders,
  services,
  uploads,
  webhooks,
  failureWindows,
  redeliveries,
];
