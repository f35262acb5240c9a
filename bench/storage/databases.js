// The PostgreSQL server of the storage benchmark, and one database for each measurement.
import { rm } from 'node:fs/promises';
import { URL } from 'node:url';
import pg from 'pg';
import { childrenOf, processorMs, readProcess } from '../processes.js';
import { createPostgresDirectory, createPostgresServer } from '../../test/kit/postgres-server.js';

export async function startDatabases() {
  const directory = await createPostgresDirectory();
  // Enough connections for six processes of Steward. All other settings are the defaults, so every commit waits for
  // the disk.
  const server = await createPostgresServer(directory, ['max_connections=300']);
  const admin = new pg.Client(server.url);
  await admin.connect();
  const { rows } = await admin.query('select pg_backend_pid() as pid');
  const { parent: postmaster } = readProcess(rows[0].pid);
  let count = 0;
  return {
    /** The processor time of the server so far, in milliseconds. */
    processorMs: () => processorMs([postmaster, ...childrenOf(postmaster)]) + readProcess(postmaster).endedMs,
    /** Creates an empty database and returns its address. */
    async create() {
      const name = `bench_${(count += 1)}`;
      await admin.query(`create database ${name}`);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return url.href;
    },
    async drop(url) {
      await admin.query(`drop database ${new URL(url).pathname.slice(1)} with (force)`);
    },
    async stop() {
      await admin.end();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Runs the work on a connection of its own. */
export async function withClient(url, work) {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
