// Deleting many rows in portions, on a database that counts them.
import { expect, it } from 'vitest';
import { type Database, deleteInBatches } from '../../src/store/postgres/database.ts';

function createDatabase(rows: number, onPortion: () => void = () => undefined) {
  const deleted: number[] = [];
  const write = (_statement: string, values: readonly unknown[]) => {
    const count = Math.min(Number(values.at(-1)), rows - deleted.reduce((sum, some) => sum + some, 0));
    deleted.push(count);
    onPortion();
    return Promise.resolve([{ count }]);
  };
  return { deleted, database: { write } as unknown as Database };
}

it('deletes until a portion is not full', async () => {
  const { deleted, database } = createDatabase(2_500);
  await deleteInBatches(database, 'delete', []);
  expect(deleted).toEqual([1_000, 1_000, 500]);
});

it('stops between two portions', async () => {
  const stop = new AbortController();
  const { deleted, database } = createDatabase(1e9, () => {
    if (deleted.length === 2) stop.abort();
  });
  await deleteInBatches(database, 'delete', [], stop.signal);
  expect(deleted).toEqual([1_000, 1_000]);
});
