// Reads the rows of other ports that the rules of a transaction need.
import { type Client, query } from '../../store/postgres/database.ts';
import type { Needs, TransactionFacts } from '../../store/transaction.ts';
import type { Upload } from '../../uploads/upload.ts';

export async function loadNeeds(client: Client, all: readonly Needs[]): Promise<TransactionFacts> {
  const uploadIds = all.flatMap(({ uploads }) => uploads ?? []);
  const uploads =
    uploadIds.length > 0
      ? await query<{ id: string; upload: Upload }>(
          client,
          'select id, upload from uploads where id = any($1::text[])',
          [uploadIds],
        )
      : undefined;
  const uploadOf = new Map(uploads?.rows.map(({ id, upload }) => [id, upload]));
  return { upload: (id) => uploadOf.get(id) };
}
