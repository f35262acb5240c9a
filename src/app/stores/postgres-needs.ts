// Reads the rows of other ports that the rules of a transaction need.
import { type Client, query } from '../../store/postgres/database.ts';
import type { Needs, TransactionFacts } from '../../store/transaction.ts';
import type { Upload } from '../../uploads/upload.ts';
import { readFailureWindows } from '../../webhooks/queue/postgres/failure-windows.ts';
import type { FailureWindow } from '../../webhooks/sending/failure-window.ts';

export async function loadNeeds(client: Client, all: readonly Needs[]): Promise<TransactionFacts> {
  const uploadIds = all.flatMap(({ uploads }) => uploads ?? []);
  const webhookIds = all.flatMap(({ failuresOf }) => failuresOf ?? []);
  const [uploads, windows] = await Promise.all([
    uploadIds.length > 0
      ? query<{ id: string; upload: Upload }>(
          client,
          'select id, upload from uploads where id = any($1::text[])',
          [uploadIds],
        )
      : undefined,
    webhookIds.length > 0
      ? readFailureWindows(client, webhookIds)
      : (new Map() as ReadonlyMap<string, FailureWindow>),
  ]);
  const uploadOf = new Map(uploads?.rows.map(({ id, upload }) => [id, upload]));
  return {
    upload: (id) => uploadOf.get(id),
    failures: (webhookId) => windows.get(webhookId) ?? null,
  };
}
