// The start of a server in this process: what it refuses, and what it warns about. main.test.ts starts processes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startServer } from '../../src/app/start.ts';
import type { ConfigError } from '../../src/config/config.ts';
import { startControlled } from '../../src/testing/routes.ts';
import { createDatabase } from '../kit/postgres.ts';
import { connect } from './steward.ts';

/** Writes a file of this test and returns its path. */
function writeTemporary(content: unknown): string {
  const directory = mkdtempSync(join(tmpdir(), 'steward-start-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'file.json');
  writeFileSync(path, JSON.stringify(content));
  return path;
}

/** Starts a server and stops it after the test. Returns the lines of its log. */
async function start(env: Record<string, string>): Promise<readonly string[]> {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const server = await startServer({
    env: { PORT: '0', ADMIN_PASSWORD: 'a good password', ...env },
    builtFiles: new URL('../../dist/', import.meta.url),
    createLogger: ({ LOG_LEVEL: level }) => pino({ level }, { write }),
    startControlled,
  });
  onTestFinished(server.close);
  return lines;
}

describe('the start refuses', () => {
  const problemsWith = (env: Record<string, string>) =>
    start(env).then(
      () => [],
      (error: unknown) => (error as ConfigError).problems,
    );

  it('a catalog file with problems, and lists them', async () => {
    const wrong = { services: [{ serviceName: 'x' }, { serviceName: 'y', type: '' }] };
    expect(await problemsWith({ CATALOG_FILE: writeTemporary(wrong) })).toEqual([
      expect.stringContaining('CATALOG_FILE: services[0].type'),
      expect.stringContaining('CATALOG_FILE: services[1].type'),
    ]);
    expect(await problemsWith({ CATALOG_FILE: 'none.json' })).toEqual([
      expect.stringContaining('CATALOG_FILE cannot be read'),
    ]);
    const three = { services: ['x', 'y', 'z'].map((serviceName) => ({ serviceName, type: 'MapServer' })) };
    expect(await problemsWith({ CATALOG_FILE: writeTemporary(three), MAX_SERVICES: '2' })).toEqual([
      'CATALOG_FILE is too large: MAX_SERVICES allows 2 services.',
    ]);
  });

  it('a database without an administrator if ADMIN_PASSWORD is absent, and no other one', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const STORE_URL = database.url;
    const withoutPassword = { STORE_URL, ADMIN_PASSWORD: '' };
    expect(await problemsWith(withoutPassword)).toEqual([
      'ADMIN_PASSWORD must be given: the database has no administrator.',
    ]);
    await start({ STORE_URL });
    expect(await problemsWith(withoutPassword)).toEqual([]);
  });

  it('a configuration of a cluster without the cluster, and leaves the database', async () => {
    const { url } = await createDatabase();
    const KUBECONFIG = writeTemporary({});
    const starting = start({ STORE_URL: url, UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG });
    await expect(starting).rejects.toThrow('KUBECONFIG names no cluster');
    const query = await connect(url);
    expect(await query('select from processes')).toEqual([]);
  });

  it('a file of registry credentials that names credential helpers', async () => {
    const file = writeTemporary({ credsStore: 'desktop' });
    expect(await problemsWith({ REGISTRY_AUTH_FILE: file })).toEqual([
      expect.stringContaining('REGISTRY_AUTH_FILE: credsStore names credential helpers'),
    ]);
    expect(await problemsWith({ REGISTRY_AUTH_FILE: 'none.json' })).toEqual([
      'REGISTRY_AUTH_FILE cannot be read: ENOENT.',
    ]);
  });
});

describe('the start warns', () => {
  it('about simulated failures of unknown containers', async () => {
    const lines = await start({ SIMULATED_FAILURES: 'map_server:2,NO_SUCH' });
    expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual(
      expect.objectContaining({ level: 40, names: ['NO_SUCH'] }),
    );
  });

  it('that upgrades of a cluster are lost with the process if there is no database', async () => {
    const KUBECONFIG = writeTemporary({
      'current-context': 'test',
      clusters: [
        { name: 'test', cluster: { server: 'http://127.0.0.1:1', 'insecure-skip-tls-verify': true } },
      ],
      users: [{ name: 'nobody', user: {} }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'nobody' } }],
    });
    const lines = await start({ UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG });
    expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual(
      expect.objectContaining({ level: 40, msg: expect.stringContaining('STORE_URL is not set') as string }),
    );
  });
});

describe('the password of the first administrator', () => {
  /** The parameters of the hash, from a snapshot of the server. */
  async function costOf(env: Record<string, string>): Promise<string | undefined> {
    const server = await startServer({
      env: { PORT: '0', TEST_CONTROL: 'true', ...env },
      builtFiles: new URL('../../dist/', import.meta.url),
      createLogger: () => pino({ level: 'silent' }),
      startControlled,
    });
    onTestFinished(server.close);
    const snapshot = await (await fetch(`${server.address}/control/snapshot`)).text();
    return /scrypt\$\d+\$\d+\$\d+/.exec(snapshot)?.[0];
  }

  it('has a slow hash if a person has chosen it, and a fast one if it is random', async () => {
    expect(await costOf({ ADMIN_PASSWORD: 'a good password' })).toBe('scrypt$16384$8$5');
    expect(await costOf({})).toBe('scrypt$2$8$1');
  });
});
