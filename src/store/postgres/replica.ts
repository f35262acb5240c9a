// Keeps this process's copy of the replicated state in step with the database.
//
// The row in `clock` counts the versions of the state, and every row of `state` has the version that changed it
// last. `seen` is the version that the copy shows. `follow` reads the rows with a higher version and applies all of
// them together, so the copy always shows one consistent version. It loads everything if rows that were removed
// since `seen` may have been pruned, or if the database server is another one than before: a replica that was promoted,
// or a server that was started from a backup, may lack the last commits.
//
// With the row in `clock` it reads the time of the database, which is the time of every process: what is due must not
// depend on the process that looks.
import { notAudited } from '../../lib/audit-fields.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { type StateChanges, freeze, rowsIn } from '../changes.ts';
import type { Copy } from '../copy.ts';
import { type Table, complete } from '../state.ts';
import { type Client, type Database, query } from './database.ts';
import type { Secrets } from './secrets.ts';

type ReplicaOptions = {
  readonly database: Pick<Database, 'noteSchema'>;
  readonly runtime: Pick<Runtime, 'now' | 'followClock'>;
  readonly copy: Copy;
  readonly tables: readonly Table<never>[];
  readonly secrets: Secrets;
  /** Called when the copy shows changes of other processes. */
  readonly onChange: () => void;
  /** Called when another database server answers than before. */
  readonly onOtherServer: () => void;
};

type Clock = {
  readonly server: string;
  readonly time: number;
  readonly version: number;
  readonly prunedTo: number;
  readonly oldestWriter: number;
};

type StateRow = { readonly kind: string; readonly key: string; readonly value: unknown };

export const cellKind = 'cell';
const clockKind = 'clock';

/** SQL: identifies a run of the database server. A replica that takes over has another one. */
const server = 'extract(epoch from pg_postmaster_start_time())::text';

/** SQL condition: the server is not the one of the parameter. */
export function isOtherServer(parameter: string): string {
  return `${server} <> ${parameter}`;
}

/** One statement, so that the rows and the clock are of one moment. */
const changedRows = `select '${clockKind}' as kind, '' as key, json_build_object('server', ${server},
    'time', floor(extract(epoch from clock_timestamp()) * 1000), 'version', version, 'prunedTo', pruned_to, 'oldestWriter', oldest_writer) as value from clock
  union all select kind, key, value from state where version > $1`;

export class Replica {
  readonly #options: ReplicaOptions;
  seen = -1;
  /** The database server that `seen` is a version of. */
  server = '';
  readonly #tables: ReadonlyMap<string, Table<never>>;
  /** Rows with secrets that the current key does not encrypt, by table and key. */
  readonly #outdated = new Map<string, { readonly table: Table<never>; readonly key: string }>();

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.#tables = new Map(options.tables.map((table) => [table.name, table]));
  }

  /** Reads the changes since `seen`. Returns whether there were any. */
  async follow(client: Client): Promise<boolean> {
    const { runtime, database } = this.#options;
    const from = runtime.now();
    const found = await readChanges(client, this.seen);
    const { clock } = found;
    runtime.followClock?.(clock.time, from, runtime.now());
    database.noteSchema(clock.oldestWriter);
    const isOther = clock.server !== this.server;
    if (clock.version === this.seen && !isOther) return false;
    const isReloaded = this.seen >= 0 && (isOther || this.seen < clock.prunedTo || clock.version < this.seen);
    const read = isReloaded ? await readChanges(client, -1) : found;
    if (isReloaded) this.#outdated.clear();
    // Without decoding all rows first, a row that cannot be read would leave the copy between two versions.
    const changes = this.#decode(read.rows);
    if (isReloaded) this.#options.copy.clear();
    this.#options.copy.apply(changes);
    this.seen = read.clock.version;
    this.server = clock.server;
    if (isReloaded && isOther) this.#options.onOtherServer();
    this.#options.onChange();
    return true;
  }

  /** Rows with secrets that must be encrypted with the current key. */
  get outdatedSecrets(): readonly { readonly table: Table<never>; readonly key: string }[] {
    return [...this.#outdated.values()];
  }

  /** The document of a row; null for a removed one. */
  encode(table: Table<never>, key: string, row: unknown): string | null {
    if (row === undefined) return null;
    if (!table.secretFields) return JSON.stringify(row);
    const document = { ...(row as Record<string, unknown>) };
    for (const field of table.secretFields)
      document[field] = this.#options.secrets.seal(
        JSON.stringify(document[field]),
        contextOf(table, key, field),
      );
    return JSON.stringify(document);
  }

  /** Applies an update of this process, which is committed as this version. */
  applyOwn(changes: StateChanges, version: number): void {
    this.#options.copy.apply(changes);
    for (const [table, rows] of changes.tables)
      for (const key of rows.keys()) this.#outdated.delete(`${table.name} ${key}`);
    this.seen = version;
  }

  #decode(rows: readonly StateRow[]): StateChanges {
    const changes = { tables: new Map(), cells: new Map() };
    for (const { kind, key, value } of rows) {
      const table = this.#tables.get(kind);
      if (kind === cellKind)
        changes.cells.set({ name: key, initial: undefined, auditFields: notAudited }, freeze(value));
      // A newer version may have tables that this one does not know.
      else if (table) {
        const row = this.#decodeRow(table, key, value);
        // Most rows contain their key: with the text of the row, the copy holds it once.
        rowsIn(changes, table).set(row === undefined ? key : table.keyOf(row as never), row);
      }
    }
    return changes;
  }

  /** Undefined for a removed row. */
  #decodeRow(table: Table<never>, key: string, value: unknown): unknown {
    if (value !== null) {
      const document = this.#openSecrets(table, key, value as Record<string, unknown>);
      return freeze(complete(document, table.defaults));
    }
    this.#outdated.delete(`${table.name} ${key}`);
    return undefined;
  }

  #openSecrets(table: Table<never>, key: string, document: Record<string, unknown>): unknown {
    let isCurrent = true;
    for (const field of (table.secretFields ?? []).filter((secret) => secret in document)) {
      const opened = this.#options.secrets.open(document[field] as string, contextOf(table, key, field));
      document[field] = JSON.parse(opened.text);
      isCurrent &&= opened.isCurrent;
    }
    const name = `${table.name} ${key}`;
    if (isCurrent) this.#outdated.delete(name);
    else this.#outdated.set(name, { table, key });
    return document;
  }
}

/** The rows that were changed after the version, and the clock. */
async function readChanges(
  client: Client,
  since: number,
): Promise<{ readonly clock: Clock; readonly rows: readonly StateRow[] }> {
  const { rows } = await query<StateRow>(client, changedRows, [since]);
  const clock = rows.find(({ kind }) => kind === clockKind);
  if (!clock) throw new Error('The table clock of the database is empty.');
  return { clock: clock.value as Clock, rows };
}

function contextOf({ name }: Table<never>, key: string, field: string): string {
  return `${name} ${key} ${field}`;
}
