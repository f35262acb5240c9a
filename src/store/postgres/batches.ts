// Deletes many rows in small transactions, so that no other write waits for long.
import type { Database } from './database.ts';

const batch = 1_000;

/**
 * The last parameter of the statement is the number of rows to delete at most. It finds them with `=
 * any(array(select …))`: the planner reads that as few rows and uses the index, whereas a join might read the whole
 * table for every batch. `stopping` ends it between two batches.
 */
export async function deleteInBatches(
  database: Database,
  statement: string,
  values: readonly unknown[],
  stopping?: AbortSignal,
): Promise<void> {
  const counted = `with deleted as (${statement} returning 1) select count(*) from deleted`;
  while (stopping?.aborted !== true) {
    const [row] = await database.write<{ count: number }>(counted, [...values, batch]);
    if ((row?.count ?? 0) < batch) return;
  }
}
