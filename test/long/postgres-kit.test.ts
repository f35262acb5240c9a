// Tests the PostgreSQL servers and schemas of the test kit.
import { Client } from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { createDatabase, startPostgres } from '../kit/postgres.ts';

const clients = new Set<Client>();
afterEach(async () => {
  await Promise.all([...clients].map((client) => client.end()));
  clients.clear();
});

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on('error', () => clients.delete(client));
  await client.connect();
  clients.add(client);
  return client;
}

const notesOf = async (client: Client) =>
  (await client.query<{ text: string }>('SELECT text FROM notes ORDER BY text')).rows.map(({ text }) => text);

describe('a schema of its own', () => {
  it('is isolated from other schemas', async () => {
    const one = await connect((await createDatabase()).url);
    const other = await connect((await createDatabase()).url);
    await one.query('CREATE TABLE notes (text text)');
    await expect(notesOf(other)).rejects.toThrow('does not exist');
    await other.query('CREATE TABLE notes (text text)');
    await one.query(`INSERT INTO notes VALUES ('mine')`);
    expect(await notesOf(other)).toEqual([]);
  });

  it('stores any text', async () => {
    const client = await connect((await createDatabase()).url);
    await client.query('CREATE TABLE notes (text text)');
    await client.query('INSERT INTO notes VALUES ($1)', ['Zürich 東京 🚀']);
    expect(await notesOf(client)).toEqual(['Zürich 東京 🚀']);
  });

  it('can be dropped while connections use it', async () => {
    const database = await createDatabase();
    const [busy, idle] = [await connect(database.url), await connect(database.url)];
    await busy.query('CREATE TABLE notes (text text)');
    await busy.query('BEGIN');
    await busy.query('LOCK TABLE notes');
    await database.drop();
    await expect(busy.query('COMMIT')).rejects.toThrow();
    await expect(notesOf(idle)).rejects.toThrow('does not exist');
  });
});

describe('a server of its own', () => {
  it('keeps committed rows, and only those, when it is killed', async () => {
    const server = await startPostgres();
    const client = await connect(server.url);
    await client.query('CREATE TABLE notes (text text)');
    await client.query(`INSERT INTO notes VALUES ('committed')`);
    await client.query('BEGIN');
    await client.query(`INSERT INTO notes VALUES ('not committed')`);
    await server.kill();
    await expect(connect(server.url)).rejects.toThrow('ECONNREFUSED');
    await server.start();
    expect(await notesOf(await connect(server.url))).toEqual(['committed']);
  });
});
