// Runs the commands of docs/operate/postgresql.md in one shell, on a PostgreSQL of the test kit; only ports and the
// directory differ. The part with nginx is skipped where nginx is not installed.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../kit/postgres.ts';
import {
  type Command,
  Ports,
  type Shell,
  checkout,
  expectAnswer,
  openShell,
  readCommands,
  readSql,
} from './page.ts';

const hasCurl = ['/usr/bin/curl', '/bin/bash'].every((path) => existsSync(path));
const hasNginx = hasCurl && existsSync('/usr/sbin/nginx');
const page = 'docs/operate/postgresql.md';
const commands = readCommands(page);
const commandsOf = (name: string) => commands.filter(({ section }) => section === name);

describe.skipIf(!hasCurl)('the commands of docs/operate/postgresql.md', () => {
  const ports = new Ports();
  let postgres: PostgresServer;
  let folder: string;
  /** The directory of nginx. */
  let proxy = '';
  let shell: Shell;
  let token = '';

  /** Runs commands as printed, with other ports. */
  const type = async (commands: string) => ports.inOutput(await shell.run(ports.inCommands(commands)));
  async function follow(command: Command | undefined): Promise<void> {
    if (!command) throw new Error('The page has fewer commands than the test.');
    expectAnswer(command, await type(command.script));
  }
  async function connectAsOwner(): Promise<Client> {
    const client = new Client(
      postgres.url.replace('/postgres@', '/steward@').replace(/postgres$/, 'steward'),
    );
    await client.connect();
    return client;
  }

  beforeAll(async () => {
    postgres = await startPostgres();
    ports.set('5432', new URL(postgres.url).port);
    await ports.reserve('8080', '8081', '8082', '8083');
    folder = await mkdtemp(join(tmpdir(), 'steward-page-'));
    symlinkSync(dirname(inject('serverEntry')), join(folder, 'dist'));
    const configuration = readFileSync(join(checkout, 'examples/nginx.conf'), 'utf8');
    mkdirSync(join(folder, 'examples'));
    writeFileSync(join(folder, 'examples/nginx.conf'), ports.inCommands(configuration));
    // The page uses the default port.
    shell = openShell(folder, { PORT: ports.get('8080') });
    const administrator = new Client(postgres.url);
    await administrator.connect();
    const [create = '', schema = ''] = readSql(page);
    for (const statement of create.trim().split('\n')) await administrator.query(statement);
    await administrator.end();
    const owner = await connectAsOwner();
    await owner.query(schema);
    await owner.end();
  });
  afterAll(async () => {
    shell.kill();
    try {
      process.kill(Number(readFileSync(join(proxy, 'nginx.pid'), 'utf8')), 'SIGTERM');
    } catch {
      // nginx has already ended.
    }
    for (const used of [folder, proxy].filter(Boolean))
      await rm(used, { recursive: true, force: true, maxRetries: 5 });
  });

  it('one process keeps its data over a restart', async () => {
    expect(commandsOf('One process')).toHaveLength(4);
    for (const command of commandsOf('One process')) await follow(command);
    expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600);
    token = await shell.run('echo -n "$TOKEN"');
  });

  it('a schema of its own makes a separate deployment', async () => {
    await follow(commandsOf('Several deployments in one database')[0]);
    const owner = await connectAsOwner();
    const { rows } = await owner.query<{ name: string }>(
      `select value ->> 'folderName' as name from harbour.state where kind = 'folders'`,
    );
    await owner.end();
    expect(rows.map(({ name }) => name)).toContain('Maps');
    expect(rows.map(({ name }) => name)).not.toContain('Harbour');
  });

  describe.skipIf(!hasNginx)('two processes behind nginx', () => {
    const [configure, start, startNginx, use, lose, restart, end] = commandsOf('Two processes behind nginx');
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

    it('both start, and each sees the changes of the other', async () => {
      for (const command of [configure, start, startNginx]) await follow(command);
      proxy = await shell.run('echo -n "$PROXY"');
      await follow(use);
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

    /** Reads the catalog by SOAP, which sends a POST, while something happens. */
    async function readBySoap<T>(happening: Promise<T>): Promise<number[]> {
      const body = readFileSync(join(checkout, 'test/golden/soap/GetFolders/request.xml'), 'utf8');
      const address = `http://127.0.0.1:${ports.get('8080')}/services`;
      const statuses: number[] = [];
      const over = new AbortController();
      const happened = happening.finally(() => over.abort());
      do {
        const answer = await fetch(address, {
          method: 'POST',
          body,
          headers: { 'content-type': 'text/xml' },
        });
        await answer.arrayBuffer();
        statuses.push(answer.status);
      } while (!over.signal.aborted);
      await happened;
      return statuses;
    }

    it('all requests are answered after one process is killed, and reads by SOAP meanwhile', async () => {
      expect(new Set(await readBySoap(follow(lose)))).toEqual(new Set([200]));
      await expectFullService();
      // Then the other process, because nginx may prefer either of them.
      const [kill = '', ...others] = lose?.script.trim().split('\n') ?? [];
      await type(kill.replaceAll('FIRST', 'SECOND'));
      await expectFullService();
      expect(await listedServices('8081')).toContain('Currents');
      await type(others.slice(-2).join('\n').replaceAll('8081', '8082').replace('FIRST', 'SECOND'));
      await expectFullService();
    });

    it('a rolling restart refuses no request', async () => {
      const restarting = new AbortController();
      const statuses: number[] = [];
      const use = async (send: () => Promise<Response>) => {
        while (!restarting.signal.aborted) {
          const answer = await send();
          await answer.arrayBuffer();
          statuses.push(answer.status);
        }
      };
      // nginx closes idle connections when it reloads, which a client that keeps them must expect.
      const close = { connection: 'close' };
      const clients = [
        use(() => ask('/admin/services?f=json', undefined, close)),
        use(() => ask('/services?wsdl', undefined, close)),
        use(() => ask('/admin/services/createFolder', { folderName: `R${randomUUID()}` }, close)),
      ];
      await follow(restart).finally(() => restarting.abort());
      await Promise.all(clients);
      expect(statuses.length).toBeGreaterThan(20);
      expect(statuses.filter((status) => status !== 200)).toEqual([]);
    });

    it('all processes end, their logs contain no token, and the next start finds the same data', async () => {
      expect((await ask(`/admin?f=json&token=${token}`, undefined, { authorization: '' })).status).toBe(200);
      await follow(end);
      await expect.poll(() => existsSync(join(proxy, 'nginx.pid'))).toBe(false);
      const logs = [
        ...['access.log', 'error.log'].map((name) => join(proxy, name)),
        ...['8081', '8082'].map((port) => join(folder, `${ports.get(port)}.log`)),
      ];
      for (const log of logs) expect(readFileSync(log, 'utf8')).not.toContain(token);
      const [access = '', , ...processes] = logs.map((log) => readFileSync(log, 'utf8'));
      const [, id = 'none'] = [...access.matchAll(/ (\w{32}) POST \/admin/g)].at(-1) ?? [];
      expect(processes.join('')).toContain(`"requestId":"${id}"`);
      await follow(start);
      expect(await listedServices('8082')).toEqual(expect.arrayContaining(['Currents', 'Tides']));
      await type(end?.script.split('\n')[1] ?? 'false');
    });
  });
});
