// Defines the tables, logs, archives and queues of the suites in one file: PostgreSQL needs all of them when the store opens.
import type { Shape } from '../../src/store/shape.ts';
import type { Archive, Cell, Log, Queue, Records, Table } from '../../src/store/transaction.ts';

/** Rows differ in size, so that a sum over the wrong rows is wrong. */
export const sizeOf = (id: string) => (Number(id.replace(/\D/g, '')) % 7) + 1;

export type Row = { readonly id: string; readonly inner: { readonly n: number } };

export const rows: Table<Row> = {
  name: 'rows',
  keyOf: ({ id }) => id,
  shape: { id: 'key', inner: 'json' } satisfies Shape<Row>,
  bytesOf: ({ inner }) => inner.n,
};
export const others: Table<Row> = { ...rows, name: 'others' };
export const cell: Cell<{ readonly n: number }> = { name: 'cell', initial: { n: 0 } };
export const log: Log<{ readonly n: number }> = { name: 'log', shape: { n: 'number' } };

export const row = (id: string, n = 0): Row => ({ id, inner: { n } });

/** One field of every kind; some names are keywords or need quotes in SQL. */
export type Keepsake = {
  readonly id: string;
  readonly words: string | null;
  readonly order: number | null;
  readonly isSet: boolean | null;
  readonly data: unknown;
  readonly signatureID: unknown;
};

const columns = {
  words: 'text',
  order: 'number',
  isSet: 'flag',
  data: 'json',
  signatureID: 'secret',
} as const;

export const keepsakes: Table<Keepsake> = {
  name: 'keepsakes',
  keyOf: ({ id }) => id,
  shape: { id: 'key', ...columns } satisfies Shape<Keepsake>,
};
export const diary: Log<Keepsake> = {
  name: 'diary',
  shape: { id: 'text', ...columns } satisfies Shape<Keepsake>,
};
export const notebook: Cell<{ readonly data: unknown }> = { name: 'notebook', initial: { data: null } };
export const dueKeepsakes: Queue<Keepsake> = {
  name: 'dueKeepsakes',
  shape: keepsakes.shape,
  keyOf: ({ id }) => id,
  ownerOf: () => 'all',
  dueAt: () => 1,
  isUrgent: () => false,
  isDull: () => false,
  bytesOf: () => 1,
};

export type Parcel = { readonly id: string; readonly label: string | null; readonly bytes: Uint8Array };

export const parcels: Archive<Parcel> = {
  name: 'parcels',
  keyOf: ({ id }) => id,
  shape: { id: 'key', label: 'text', bytes: 'bytes' } satisfies Shape<Parcel>,
  isArchive: true,
};

export type Ticket = { readonly id: string; readonly due: number | null; readonly note: string };

/** The owner is the first letter of the id; the note may be 'urgent' or 'dull'. */
export const tickets: Queue<Ticket> = {
  name: 'tickets',
  shape: { id: 'key', due: 'number', note: 'text' } satisfies Shape<Ticket>,
  keyOf: ({ id }) => id,
  ownerOf: ({ id }) => id.charAt(0),
  dueAt: ({ due }) => due,
  isUrgent: ({ note }) => note === 'urgent',
  isDull: ({ note }) => note === 'dull',
  bytesOf: ({ id }) => sizeOf(id),
};
export const otherTickets: Queue<Ticket> = { ...tickets, name: 'otherTickets' };

export type Try = { readonly n: number; readonly note: string | null };

export type Visit = {
  readonly id: string;
  readonly host: string;
  readonly due: number | null;
  readonly tries: readonly Try[];
};

/** Rows with an append-only list. */
export const visits: Queue<Visit> = {
  name: 'visits',
  shape: {
    id: 'key',
    host: 'owner',
    due: 'number',
    tries: { table: 'visitTries', shape: { n: 'number', note: 'text' } satisfies Shape<Try> },
  } satisfies Shape<Visit>,
  keyOf: ({ id }) => id,
  ownerOf: ({ host }) => host,
  dueAt: ({ due }) => due,
  isUrgent: ({ tries }) => tries.length > 0,
  isDull: ({ tries }) => tries.length === 0,
  bytesOf: ({ id }) => sizeOf(id),
};

export type Chore = {
  readonly id: string;
  readonly owner: string;
  readonly due: number | null;
  readonly isUrgent: boolean;
  readonly isDull: boolean;
  readonly n: number;
};

/** Rows for the random operations of queue-model.test.ts. */
export const chores: Queue<Chore> = {
  name: 'chores',
  shape: {
    id: 'key',
    owner: 'owner',
    due: 'number',
    isUrgent: 'flag',
    isDull: 'flag',
    n: 'number',
  } satisfies Shape<Chore>,
  keyOf: ({ id }) => id,
  ownerOf: ({ owner }) => owner,
  dueAt: ({ due }) => due,
  isUrgent: ({ isUrgent }) => isUrgent,
  isDull: ({ isDull }) => isDull,
  bytesOf: ({ id }) => sizeOf(id),
};

export const records: Records = {
  tables: [rows, others, keepsakes],
  archives: [parcels],
  logs: [log, diary],
  queues: [tickets, otherTickets, dueKeepsakes, visits, chores],
};
