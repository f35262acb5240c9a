// Applies the numbered migrations that the database lacks. An advisory lock keeps processes that start together
// from applying them twice. A database whose migrations differ from those of the same number is refused.
//
// Processes of two versions may share a database while one replaces the other, so every migration is of one of two
// kinds. An expanding migration adds what the version before does not read and need not write. A contracting
// migration, whose first line is `-- contract`, removes or changes what the version before uses: a program that
// does not know it must not write any more. `clock.oldest_writer` has the number of the newest contracting
// migration.
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { type Client, type Database, query } from './database.ts';

/** The SQL texts in a folder, in the order of their names. */
export async function readMigrations(folder: URL): Promise<string[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')));
}

/** The key of the advisory lock. Every schema of a database has its own. */
const lockName = `hashtextextended('steward migrations ' || current_schema(), 0)`;

const contractMark = '-- contract\n';

/** Applies `migrations`, which are SQL texts; the first is number 1. */
export async function migrate(database: Database, migrations: readonly string[]): Promise<void> {
  const hashes = migrations.map(hashOf);
  if ((await database.probe(findApplied)).join() === hashes.join()) return;
  await database.usePatiently(async (client) => {
    await client.query('begin');
    await checkServer(client);
    await query(client, `select pg_advisory_xact_lock(${lockName})`);
    const applied = await findApplied(client);
    if (applied.length === 0 && (await hasTable(client, 'clock'))) throw earlierBuild();
    if (applied.some((hash, index) => hash !== (hashes[index] ?? hash))) throw earlierBuild();
    await client.query(
      'create table if not exists steward_migrations (number bigint primary key, hash text not null, applied_at timestamptz not null default now())',
    );
    if (applied.length > migrations.length) await requireKnown(client, migrations.length);
    for (const [index, sql] of migrations.entries()) {
      if (index < applied.length) continue;
      await client.query(sql);
      await query(client, 'insert into steward_migrations (number, hash) values ($1, $2)', [
        index + 1,
        hashes[index],
      ]);
      if (sql.startsWith(contractMark))
        await query(client, 'update clock set oldest_writer = $1, version = version + 1', [index + 1]);
    }
    await client.query('commit');
  });
}

function hashOf(migration: string): string {
  return createHash('sha256').update(migration).digest('hex');
}

/** Throws if the database has a contracting migration that this program does not know. */
async function requireKnown(client: Client, known: number): Promise<void> {
  const { rows } = await query<{ oldest_writer: number }>(client, 'select oldest_writer from clock');
  const oldestWriter = rows[0]?.oldest_writer ?? 0;
  if (oldestWriter <= known) return;
  throw new Error(
    `The database has schema ${oldestWriter}, but this version of the program supports up to ${known}. Run a newer version.`,
  );
}

/** Builds before the release of 0.2.0 had other migrations of the same number, and kept no hash or another table of them. */
function earlierBuild(): Error {
  return new Error(
    'The database was created by an earlier build, which this version cannot read. Use an empty database or another schema.',
  );
}

async function hasTable(client: Client, name: string): Promise<boolean> {
  const { rows } = await query<{ found: boolean }>(
    client,
    `select to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1)) is not null as found`,
    [name],
  );
  return rows[0]?.found === true;
}

/** The hashes of the applied migrations, in their order; null for a build that kept none. */
async function findApplied(client: Client): Promise<readonly (string | null)[]> {
  if (!(await hasTable(client, 'steward_migrations'))) return [];
  const { rows } = await query<{ hash: string | null }>(
    client,
    `select to_jsonb(m) ->> 'hash' as hash from steward_migrations m order by number`,
  );
  return rows.map(({ hash }) => hash);
}

async function checkServer(client: Client): Promise<void> {
  const { rows } = await query<{ encoding: string; version: number; schema: string | null }>(
    client,
    `select current_setting('server_encoding') as encoding, current_setting('server_version_num')::int as version,
       current_schema() as schema`,
  );
  const { encoding, version, schema } = rows[0] ?? { encoding: '', version: 0, schema: null };
  if (schema === null) throw new Error('The database has none of the schemas in search_path.');
  if (encoding !== 'UTF8') throw new Error(`The database must be encoded in UTF8, not ${encoding}.`);
  if (version < 150_000) throw new Error('The database must be PostgreSQL 15 or newer.');
}
