// Runs the README's commands for two processes behind nginx in one shell; only ports and the home directory differ. Skipped where nginx is
// not installed.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../kit/postgres.ts';

const isInstalled = ['/usr/sbin/nginx', '/usr/bin/curl', '/bin/bash'].every((path) => existsSync(path));
const checkout = fileURLToPath(new URL('../../', import.meta.url));
const readme = readFileSync(join(checkout, 'README.md'), 'utf8');
const section = /^## Durable, and more than one process\n([\s\S]*?)^## /m.exec(readme)?.[1] ?? '';

function blocksOf(language: string): string[] {
  return [...section.matchAll(new RegExp('^```' + language + '\\n([\\s\\S]*?)^```', 'gm'))].map(
    ([, block]) => block ?? '',
  );
}

describe.skipIf(!isInstalled)(
  'two processes behind nginx, with the commands of the README',
  { timeout: 60_000 },
  () => {
    const [start = '', startNginx = '', use = '', lose = '', end = ''] = blocksOf('bash');
    const ports = new Map<string, string>();
    let postgres: PostgresServer;
    let home: string;
    let folder: string;
    let shell: ReturnType<typeof openShell>;
    let token: string;

    /** Runs commands as printed, with other ports. */
    function type(commands: string): Promise<string> {
      return shell.run(commands.replaceAll(/\b(5432|8080|8081|8082)\b/g, (port) => ports.get(port) ?? port));
    }
    function ask(path: string, fields?: Record<string, string> | FormData, headers = {}, port = '8080') {
      const address = `http://127.0.0.1:${ports.get(port)}${path}`;
      const body = fields && !(fields instanceof FormData) ? new URLSearchParams(fields) : (fields ?? null);
      const method = body ? 'POST' : 'GET';
      return fetch(address, { method, body, headers: { authorization: `Bearer ${token}`, ...headers } });
    }
    async function listedServices(port = '8080'): Promise<string[]> {
      const answer = await ask('/admin/services?f=json', undefined, {}, port);
      expect(answer.status).toBe(200);
      const { services } = (await answer.json()) as { services: { serviceName: string }[] };
      return services.map(({ serviceName }) => serviceName);
    }
    async function upload(bytes: number): Promise<Response> {
      const form = new FormData();
      form.set('itemFile', new Blob([new Uint8Array(bytes)]), 'large.bin');
      return ask('/admin/uploads/upload', form);
    }
    /** Uses every part of the server that clients use most, with a new token. */
    async function expectFullService(): Promise<void> {
      const credentials = { username: 'admin', password: 'correct horse' };
      const signedIn = await ask('/tokens/generateToken', credentials, { authorization: '' });
      ({ token } = (await signedIn.json()) as { token: string });
      const folderName = `F${randomUUID()}`;
      expect((await ask('/admin/services/createFolder', { folderName })).status).toBe(200);
      expect((await ask(`/admin/services/${folderName}`)).status).toBe(200);
      expect(await listedServices()).toEqual(expect.arrayContaining(['Currents', 'Tides']));
      expect((await ask('/services?wsdl')).status).toBe(200);
      expect((await ask('/admin?f=html')).status).toBe(200);
      expect((await ask('/ready')).status).toBe(200);
    }

    beforeAll(async () => {
      postgres = await startPostgres();
      ports.set('5432', new URL(postgres.url).port);
      for (const port of ['8080', '8081', '8082']) ports.set(port, String(await findPort()));
      home = await mkdtemp(join(tmpdir(), 'steward-home-'));
      folder = join(home, 'two-stewards');
      shell = openShell(home);
      const administrator = new Client(postgres.url);
      await administrator.connect();
      const [statements = ''] = blocksOf('sql');
      for (const statement of statements.trim().split('\n')) await administrator.query(statement);
      await administrator.end();
    });
    afterAll(async () => {
      shell.kill();
      try {
        process.kill(Number(readFileSync(join(folder, 'nginx.pid'), 'utf8')), 'SIGTERM');
      } catch {
        // nginx has already ended.
      }
      await rm(home, { recursive: true, force: true, maxRetries: 5 });
    });

    it('both start, and each sees the changes of the other', async () => {
      expect(await type(start)).toBe('{"status":"ready"}{"status":"ready"}');
      expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600);
      expect(await type(startNginx)).toBe('');
      expect(await type(use)).toBe('{"status":"success"}"serviceName":"Tides"\n"serviceName":"Tides"\n');
      token = await shell.run('echo -n "$TOKEN"');
    });

    it('a client sees its own changes immediately', async () => {
      for (let times = 0; times < 10; times += 1) {
        const folderName = `Own${times}`;
        expect((await ask('/admin/services/createFolder', { folderName })).status).toBe(200);
        expect((await ask(`/admin/services/${folderName}`)).status).toBe(200);
      }
    });

    it('a client cannot forge its address', async () => {
      const bound = { username: 'admin', password: 'correct horse', client: 'ip', ip: '203.0.113.9' };
      const answer = (await (await ask('/tokens/generateToken', bound, { authorization: '' })).json()) as {
        token: string;
      };
      const headers = { authorization: `Bearer ${answer.token}`, 'x-forwarded-for': '203.0.113.9' };
      await expect.poll(async () => (await ask('/admin', undefined, headers, '8081')).status).toBe(200);
      await expect.poll(async () => (await ask('/admin', undefined, headers, '8082')).status).toBe(200);
      expect((await ask('/admin', undefined, headers)).status).toBe(401);
    });

    it('nginx passes the largest file, and Steward refuses a larger one', async () => {
      expect((await upload(10 * 1024 ** 2)).status).toBe(200);
      const refused = await upload(10 * 1024 ** 2 + 1);
      expect(refused.status).toBe(413);
      expect(await refused.json()).toMatchObject({ error: { code: 413 } });
    });

    it('all requests are answered after one process is killed', async () => {
      expect(await type(lose)).toMatch(
        /^\{"status":"success"\}"serviceName":"Currents"\n"serviceName":"Tides"\n\{"status":"ready"\}$/,
      );
      await expectFullService();
      // Then the other process, because nginx may prefer either of them.
      await type(lose.split('\n')[0]?.replaceAll('FIRST', 'SECOND') ?? '');
      await expectFullService();
      expect(await listedServices('8081')).toContain('Currents');
      await type(lose.split('\n').slice(-3).join('\n').replaceAll('8081', '8082').replace('FIRST', 'SECOND'));
      await expectFullService();
    });

    it('reads still work without the database, and everything works when it is available again', async () => {
      await postgres.kill();
      await expect.poll(async () => (await ask('/ready')).status).toBe(503);
      expect(await listedServices()).toContain('Tides');
      const refused = await ask('/admin/services/createFolder', { folderName: 'Refused' });
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
      expect((await ask('/health')).status).toBe(200);
      await postgres.start();
      for (const port of ['8081', '8082'])
        await expect.poll(async () => (await ask('/ready', undefined, {}, port)).status).toBe(200);
      await expectFullService();
    });

    it('all processes end, their logs contain no token, and the next start finds the same data', async () => {
      expect((await ask(`/admin?f=json&token=${token}`, undefined, { authorization: '' })).status).toBe(200);
      expect(await type(end)).toBe('');
      await expect.poll(() => existsSync(join(folder, 'nginx.pid'))).toBe(false);
      const logs = ['access.log', 'error.log', ...['8081', '8082'].map((port) => `${ports.get(port)}.log`)];
      for (const log of logs) expect(readFileSync(join(folder, log), 'utf8')).not.toContain(token);
      await shell.run(`cd ${checkout}`);
      expect(await type(start)).toBe('{"status":"ready"}{"status":"ready"}');
      expect(await listedServices('8082')).toEqual(expect.arrayContaining(['Currents', 'Tides']));
      await type(end.split('\n')[1] ?? '');
    });
  },
);

/** Opens a shell that reads commands from its input. It exits at the first command that fails. */
function openShell(home: string) {
  const bash: ChildProcessWithoutNullStreams = spawn('bash', ['-e'], {
    cwd: checkout,
    env: { PATH: process.env.PATH, HOME: home },
    // Its own process group, so that `kill` also ends the processes that it started.
    detached: true,
  });
  const ended = once(bash, 'close');
  let out = '';
  let err = '';
  bash.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  bash.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  return {
    async run(commands: string): Promise<string> {
      const mark = randomUUID();
      const from = out.length;
      bash.stdin.write(`${commands}\necho ${mark}\n`);
      const done = new Promise<void>((resolve) => {
        const look = () => {
          if (!out.includes(mark)) return;
          bash.stdout.off('data', look);
          resolve();
        };
        bash.stdout.on('data', look);
      });
      await Promise.race([
        done,
        ended.then(() => {
          throw new Error(`${out.slice(from)}\n${err}`);
        }),
      ]);
      return out.slice(from, out.indexOf(mark));
    },
    kill(): void {
      try {
        process.kill(-(bash.pid ?? 0), 'SIGKILL');
      } catch {
        // All of them have already ended.
      }
    },
  };
}

/** Below the ephemeral ports: an outgoing connection could take one of those while a process is down. */
async function findPort(): Promise<number> {
  for (;;) {
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(randomInt(10_000, 32_000), '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    const address = server.address();
    server.close();
    if (typeof address === 'object' && address) return address.port;
  }
}
