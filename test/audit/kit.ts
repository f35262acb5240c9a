// Reads the audit trail of a test server.
import type { AuditEntry } from '../../src/store/audit-entry.ts';
import type { Server } from '../kit/server.ts';

export async function entriesOf(
  { store }: Pick<Server, 'store'>,
  num = 1000,
): Promise<readonly AuditEntry[]> {
  return (await store.audit.page({}, 0, num)).entries;
}

/** The entries that the work adds, newest first. An entry that only counts more is not one of them. */
export async function newEntries(
  server: Pick<Server, 'store'>,
  work: () => Promise<unknown>,
): Promise<readonly AuditEntry[]> {
  const before = new Set((await entriesOf(server)).map(({ id }) => id));
  await work();
  return (await entriesOf(server)).filter(({ id }) => !before.has(id));
}
