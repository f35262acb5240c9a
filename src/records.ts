// Lists every table, archive, log and queue that the server stores. src/store/postgres/migrations creates them;
// test/store/schema.test.ts compares the two.
import { tokens } from './auth/token.ts';
import { users } from './auth/user.ts';
import { folders, services } from './catalog/catalog.ts';
import type { Records } from './store/transaction.ts';
import { jobs, messages, plans } from './upgrades/job-table.ts';
import { uploadContents, uploads } from './uploads/upload.ts';
import { deliveries } from './webhooks/delivery.ts';
import { rememberedEvents } from './webhooks/idempotency.ts';
import { webhooks } from './webhooks/webhook.ts';

export const records: Records = {
  tables: [users, tokens, folders, services, uploads, jobs, plans, webhooks, rememberedEvents],
  archives: [uploadContents],
  logs: [messages],
  queues: [deliveries],
};
