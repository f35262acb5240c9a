// The built process as its users run it: starts, answers, stops with nothing left. `npm test` builds it first.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const entry = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts the server in a directory of its own, so that no .env but ours is read. */
function start(env: Record<string, string> = {}, files: Record<string, string> = {}) {
  const cwd = mkdtempSync(join(tmpdir(), 'steward-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
  const child = spawn(process.execPath, [entry], { cwd, env: { PATH: process.env.PATH, PORT: '0', ...env } });
  running.add(child);
  const said = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()));
  const exited = once(child, 'close').then(([code]) => {
    running.delete(child);
    rmSync(cwd, { recursive: true });
    return code as number | null;
  });
  const listening = new Promise<string>((resolve, reject) => {
    child.stderr.on('data', () => {
      const address = /listens on (http:\S+)/.exec(said.err)?.[1];
      if (address !== undefined && said.err.includes('admin ')) resolve(address);
    });
    void exited.then(() => reject(new Error(said.err)));
  });
  listening.catch(() => undefined);
  return { child, said, exited, listening };
}

describe('the process', () => {
  it('starts with no configuration, tells where everything is, and the password it made up works', async () => {
    const { child, said, exited, listening } = start();
    const address = await listening;
    const port = new URL(address).port;
    expect(said.err).toContain(`catalog  http://localhost:${port}/services\n`);
    expect(said.err).toContain(`WSDL     http://localhost:${port}/services?wsdl\n`);
    expect(said.err).toContain(`admin    http://localhost:${port}/admin\n`);
    const wsdl = await (await fetch(`${address}/services?wsdl`)).text();
    expect(wsdl).toContain(`<soap:address location="http://localhost:${port}/services"/>`);

    await expect.poll(() => said.err).toMatch(/with the password \S+ /);
    const password = /with the password (\S+) /.exec(said.err)?.[1] ?? '';
    const body = new URLSearchParams({ username: 'admin', password });
    const signedIn = await fetch(`${address}/tokens/generateToken`, { method: 'POST', body });
    expect(await signedIn.json()).toMatchObject({ ssl: false });

    child.kill('SIGTERM');
    expect(await exited).toBe(0);
    expect(said.err.split(password)).toHaveLength(2);
    expect(said.out).not.toContain(password);
    const lines = said.out.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toContain('closed');
  });

  it('finishes what runs before it stops, and takes nothing new', async () => {
    const { child, exited, listening } = start({ ADMIN_PASSWORD: 'a good password' });
    const { hostname, port } = new URL(await listening);
    const body = new URLSearchParams({ username: 'admin', password: 'a good password' }).toString();
    const request = httpRequest({
      ...{ hostname, port, path: '/tokens/generateToken', method: 'POST' },
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-length': body.length },
    });
    request.write(body.slice(0, 10));
    await expect.poll(async () => (await fetch(`http://${hostname}:${port}/health`)).ok).toBe(true);
    child.kill('SIGINT');
    await expect
      .poll(() =>
        fetch(`http://${hostname}:${port}/health`).then(
          () => 'open',
          () => 'closed',
        ),
      )
      .toBe('closed');
    request.end(body.slice(10));
    const [response] = (await once(request, 'response')) as [{ statusCode: number }];
    expect(response.statusCode).toBe(200);
    request.destroy();
    expect(await exited).toBe(0);
  });

  it('prints every problem of its configuration and exits with 1', async () => {
    const { said, exited } = start({ PORT: 'x', LOG_LEVEL: 'loud' });
    expect(await exited).toBe(1);
    expect(said.err).toContain(
      'Steward cannot start:\n  PORT must be an integer from 0 to 65535.\n  LOG_LEVEL must be',
    );
  });

  it('refuses a catalog file with problems, naming each', async () => {
    const files = {
      'catalog.json': JSON.stringify({ services: [{ serviceName: 'x' }, { serviceName: 'y', type: '' }] }),
    };
    const { said, exited } = start({ CATALOG_FILE: 'catalog.json' }, files);
    expect(await exited).toBe(1);
    expect(said.err).toContain('CATALOG_FILE: services[0].type');
    expect(said.err).toContain('CATALOG_FILE: services[1].type');
    const missing = start({ CATALOG_FILE: 'none.json' });
    expect(await missing.exited).toBe(1);
    expect(missing.said.err).toContain('CATALOG_FILE cannot be read');
  });

  it('reads .env, below the environment', async () => {
    const { child, exited, listening } = start(
      { TOKENS_PATH: '/from-environment' },
      { '.env': 'ADMIN_PASSWORD="from the file"\nTOKENS_PATH=/from-file\n' },
    );
    const address = await listening;
    const body = new URLSearchParams({ username: 'admin', password: 'from the file' });
    expect((await fetch(`${address}/from-environment/generateToken`, { method: 'POST', body })).status).toBe(
      200,
    );
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('warns of simulated failures that can never happen', async () => {
    const { child, said, exited, listening } = start({ SIMULATED_FAILURES: 'map_server:2,NO_SUCH' });
    await listening;
    await expect.poll(() => said.out).toContain('"names":["NO_SUCH"]');
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('says so when its port is taken', async () => {
    const first = start();
    const { port } = new URL(await first.listening);
    const second = start({ PORT: port });
    expect(await second.exited).toBe(1);
    expect(second.said.err).toContain('EADDRINUSE');
    first.child.kill('SIGTERM');
    expect(await first.exited).toBe(0);
  });
});
