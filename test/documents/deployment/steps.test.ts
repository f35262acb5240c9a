// Runs the scripts of the example steps in deploy/steps, with a PostgreSQL of Debian. Skipped where it, or wget, is
// not installed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readManifests } from '../../kit/manifests.ts';
import { type DebianPostgres, binaries, isInstalled, startDebianPostgres } from './debian-postgres.ts';
import { checkout } from './page.ts';

const hasWget = spawnSync('wget', ['--version']).status === 0;

type CronJob = {
  spec: { jobTemplate: { spec: { template: { spec: { containers: { args: string[] }[] } } } } };
};

function scriptOf(file: string, name: string): string {
  const manifests = readManifests(readFileSync(join(checkout, 'deploy/steps', file), 'utf8'));
  const found = manifests.find(({ metadata }) => metadata.name === name) as unknown as CronJob | undefined;
  return found?.spec.jobTemplate.spec.template.spec.containers[0]?.args[0] ?? '';
}

/** Runs a script as its container does, with other paths. */
async function run(script: string, folder: string, env: Record<string, string>) {
  const log = join(folder, 'termination-log');
  rmSync(log, { force: true });
  const text = script.replaceAll('/dev/termination-log', log).replaceAll('/backups/', `${folder}/`);
  const child = spawn('sh', ['-ec', text], { env: { PATH: `${binaries}:${process.env.PATH}`, ...env } });
  const status = await new Promise((resolve) => child.on('close', resolve));
  return { status, message: existsSync(log) ? readFileSync(log, 'utf8').trim() : '' };
}

describe.skipIf(!isInstalled)('the example steps of the database', () => {
  let postgres: DebianPostgres;
  const steps = () => ({
    DATABASE_URL: postgres.url,
    STEWARD_FROM_VERSION: '10.9.1.1234',
    STEWARD_JOB_ID: 'job',
  });

  beforeAll(async () => {
    postgres = await startDebianPostgres();
  });
  afterAll(() => postgres.stop());

  it.each(['backup', 'backup-rollback'])('%s saves a backup that can be restored', async (name) => {
    await postgres.administer('create table if not exists kept (id int); insert into kept values (7)');
    const file = join(postgres.folder, '10.9.1.1234-job.dump');
    expect(await run(scriptOf('backup.yaml', name), postgres.folder, steps())).toEqual({
      status: 0,
      message: `Saved ${file}.`,
    });
    const restored = spawnSync(join(binaries, 'pg_restore'), ['--file=-', file], { encoding: 'utf8' });
    expect(restored.stdout).toContain('COPY public.kept');
  });

  it('backup fails without a database, and leaves no file that looks complete', async () => {
    const nowhere = { ...steps(), DATABASE_URL: 'postgres://127.0.0.1:1/none', STEWARD_JOB_ID: 'other' };
    expect((await run(scriptOf('backup.yaml', 'backup'), postgres.folder, nowhere)).status).not.toBe(0);
    expect(readdirSync(postgres.folder).filter((name) => name.endsWith('other.dump'))).toEqual([]);
  });

  it('database-validate accepts a good database, and names invalid indexes', async () => {
    const script = scriptOf('database-validate.yaml', 'database-validate');
    expect(await run(script, postgres.folder, steps())).toEqual({ status: 0, message: '' });
    await postgres.administer('create table broken (id int); create index broken_id on broken (id)');
    await postgres.administer(
      "update pg_index set indisvalid = false where indexrelid = 'broken_id'::regclass",
    );
    expect(await run(script, postgres.folder, steps())).toEqual({
      status: 1,
      message: 'These indexes are invalid: broken_id',
    });
  });
});

it.skipIf(!hasWget)(
  'the smoke test accepts an address that answers, and names one that does not',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'steward-steps-'));
    const server = createServer((request, response) => {
      response.statusCode = request.url === '/health' ? 200 : 503;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const script = scriptOf('smoke-test.yaml', 'smoke-test').replaceAll('-T 10', '-T 10 -t 1');
    const at = (path: string) => script.replace('http://steward:8080/health', address + path);
    expect(await run(at('/health'), folder, {})).toEqual({ status: 0, message: '' });
    expect(await run(at('/other'), folder, {})).toEqual({
      status: 1,
      message: `${address}/other does not answer.`,
    });
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true });
  },
);
