// Applies the numbered migrations that the database lacks. An advisory lock keeps processes that start together from applying them twice.
import { readFile, readdir } from 'node:fs/promises';
import { type Client, type Database, query } from './database.ts';

/** The SQL texts in a folder, in the order of their names. */
export async function readMigrations(folder: URL): Promise<string[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')));
}

/** The key of the advisory lock. Every schema of a database has its own. */
const lockName = `hashtextextended('steward migrations ' || current_schema(), 0)`;

/** Applies `migrations`, which are SQL texts; the first is number 1. */
export async function migrate(database: Database, migrations: readonly string[]): Promise<void> {
  if ((await database.use(findApplied)) === migrations.length) return;
  await database.usePatiently(async (client) => {
    await client.query('begin');
    await checkServer(client);
    await query(client, `select pg_advisory_xact_lock(${lockName})`);
    await client.query(
      'create table if not exists migrations (number bigint primary key, applied_at timestamptz not null default now())',
    );
    const applied = await findApplied(client);
    if (applied > migrations.length) {
      throw new Error(
        `The database has schema ${applied}, but this version of the program supports up to ${migrations.length}. Run a newer version.`,
      );
    }
    for (const [index, sql] of migrations.entries()) {
      if (index < applied) continue;
      await client.query(sql);
      await query(client, 'insert into migrations (number) values ($1)', [index + 1]);
    }
    await client.query('commit');
  });
}

/** The number of the newest applied migration; 0 if there is none. */
async function findApplied(client: Client): Promise<number> {
  const { rows: tables } = await query<{ name: string | null }>(
    client,
    `select to_regclass(quote_ident(current_schema()) || '.migrations') as name`,
  );
  if (!tables[0]?.name) return 0;
  const { rows } = await query<{ number: number | null }>(
    client,
    'select max(number) as number from migrations',
  );
  return rows[0]?.number ?? 0;
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
