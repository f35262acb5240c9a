// Reads the rows of other ports that the rules of a transaction need.
import { type TokenRow, selectTokens, toToken } from '../../auth/token-store-postgres.ts';
import { type Client, query } from '../../store/postgres/database.ts';
import type { Needs, TransactionFacts } from '../../store/transaction.ts';
import type { Upload } from '../../uploads/upload.ts';
import { readFailureWindows } from '../../webhooks/queue/postgres/failure-windows.ts';
import type { FailureWindow } from '../../webhooks/sending/failure-window.ts';

export async function loadNeeds(client: Client, all: readonly Needs[]): Promise<TransactionFacts> {
  const hashes = all.flatMap(({ tokens }) => tokens ?? []);
  const uploadIds = all.flatMap(({ uploads }) => uploads ?? []);
  const webhookIds = all.flatMap(({ failuresOf }) => failuresOf ?? []);
  const [tokens, uploads, windows] = await Promise.all([
    hashes.length > 0
      ? query<TokenRow>(client, `${selectTokens} where hash = any($1::text[])`, [hashes])
      : undefined,
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
  const tokenOf = new Map(tokens?.rows.map((row) => [row.hash, toToken(row)]));
  const uploadOf = new Map(uploads?.rows.map(({ id, upload }) => [id, upload]));
  return {
    token: (hash) => tokenOf.get(hash),
    upload: (id) => uploadOf.get(id),
    failures: (webhookId) => windows.get(webhookId) ?? null,
  };
}
