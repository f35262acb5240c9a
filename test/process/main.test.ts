// Tests the server as a process: start, configuration, signals and exit codes, and the build in dist. start.test.ts
// tests what needs no process.
import { once } from 'node:events';
import { cpSync, mkdtempSync, symlinkSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { freePort } from '../kit/ports.ts';
import { startProcess } from '../kit/process.ts';

describe('the process', () => {
  it('starts without configuration, prints its addresses and a random password, and stops on SIGTERM', async () => {
    const { child, output, exited, listening } = startProcess();
    const address = await listening;
    const port = new URL(address).port;
    expect(output.err).toContain(`catalog  http://localhost:${port}/services\n`);
    expect(output.err).toContain(`WSDL     http://localhost:${port}/services?wsdl\n`);
    expect(output.err).toContain(`admin    http://localhost:${port}/admin\n`);
    const wsdl = await (await fetch(`${address}/services?wsdl`)).text();
    expect(wsdl).toContain(`<soap:address location="http://localhost:${port}/services"/>`);

    await expect.poll(() => output.err).toMatch(/with the password \S+ /);
    const password = /with the password (\S+) /.exec(output.err)?.[1] ?? '';
    const body = new URLSearchParams({ username: 'admin', password });
    const signedIn = await fetch(`${address}/tokens/generateToken`, { method: 'POST', body });
    expect(await signedIn.json()).toMatchObject({ ssl: false });
    const metrics = await (await fetch(`${address}/metrics`)).text();
    expect(metrics).toContain('steward_process_cpu_user_seconds_total');
    expect(metrics).toContain('steward_nodejs_active_handles_total');
    // The library is loaded after the first answer.
    expect(metrics).toContain('requests_total{method="GET",route="/services",status="200"} 1\n');

    child.kill('SIGTERM');
    expect(await exited).toBe(0);
    expect(output.err.split(password)).toHaveLength(2);
    expect(output.out).not.toContain(password);
    const lines = output.out.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toContain('closed');
  });

  it('shows the metrics of the process also after a reset, and once', async () => {
    const { exited, child, listening } = startProcess({ TEST_CONTROL: 'true' });
    const address = await listening;
    const readMetrics = async () => (await fetch(`${address}/metrics`)).text();
    await readMetrics();
    const headers = { 'content-type': 'application/json' };
    expect((await fetch(`${address}/control/reset`, { method: 'POST', headers })).status).toBe(200);
    expect((await readMetrics()).match(/^steward_process_cpu_user_seconds_total /gm)).toHaveLength(1);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('keeps running when a reader closes its output', async () => {
    const port = await freePort();
    const { child, exited } = startProcess({ PORT: `${port}` });
    child.stdout.destroy();
    child.stderr.destroy();
    const ask = () => fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(20_000) });
    const status = () =>
      ask().then(
        (answer) => answer.status,
        () => 0,
      );
    await expect.poll(status, { timeout: 60_000 }).toBe(200);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('shows the metrics at a port of their own', async () => {
    const { child, output, exited, listening } = startProcess({ METRICS_PORT: '0', HOST: '127.0.0.1' });
    const address = await listening;
    await expect.poll(() => output.err).toMatch(/metrics {2}\S+/);
    const metrics = /metrics {2}(\S+)/.exec(output.err)?.[1] ?? '';
    expect(await (await fetch(metrics)).text()).toContain('steward_process_cpu_user_seconds_total');
    expect((await fetch(`${address}/metrics`)).status).toBe(404);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('finishes open requests before it stops, and accepts no new connection', async () => {
    const { child, exited, listening } = startProcess({ ADMIN_PASSWORD: 'a good password' });
    const { hostname, port } = new URL(await listening);
    const body = new URLSearchParams({ username: 'admin', password: 'a good password' }).toString();
    const request = httpRequest({
      hostname,
      port,
      path: '/tokens/generateToken',
      method: 'POST',
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

  it('prints all problems of its configuration and exits with 1', async () => {
    const { output, exited } = startProcess({ PORT: 'x', LOG_LEVEL: 'loud' });
    expect(await exited).toBe(1);
    expect(output.err).toContain(
      'Steward cannot start:\n  PORT must be an integer from 0 to 65535.\n  LOG_LEVEL must be',
    );
  });

  it('reads .env; the environment has precedence', async () => {
    const { child, exited, listening } = startProcess(
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

  it('exits with 1 when its port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { output, exited } = startProcess({ PORT: String(port) });
    expect(await exited).toBe(1);
    expect(output.err).toContain('EADDRINUSE');
  });

  it('exits with 1 when a later part of the start fails', async () => {
    const { url } = await createDatabase();
    const { output, exited } = startProcess(
      {
        STORE_URL: url,
        ADMIN_PASSWORD: 'a good password',
        UPGRADE_EXECUTOR: 'kubernetes',
        KUBECONFIG: 'kubeconfig',
      },
      { kubeconfig: 'no cluster' },
    );
    expect(await exited).toBe(1);
    expect(output.out).toContain('the store is PostgreSQL');
    expect(output.err).toContain('Steward cannot start: KUBECONFIG names no cluster');
  });
});

describe('npm start', () => {
  /** A directory with the build, but without the sources. */
  function installBuild(): string {
    const checkout = fileURLToPath(new URL('../../', import.meta.url));
    const directory = mkdtempSync(join(tmpdir(), 'steward-build-'));
    for (const name of ['dist', 'package.json'])
      cpSync(join(checkout, name), join(directory, name), { recursive: true });
    symlinkSync(join(checkout, 'node_modules'), join(directory, 'node_modules'));
    return directory;
  }

  it('serves everything from dist, creates the tables of a database, and passes SIGTERM on to the server', async () => {
    const cwd = installBuild();
    const { url } = await createDatabase();
    // Without --ignore-scripts npm would build first.
    const command = ['npm', 'start', '--silent', '--ignore-scripts'];
    const { child, output, exited, listening } = startProcess(
      { HOME: cwd, STORE_URL: url, ADMIN_PASSWORD: 'a good password' },
      {},
      { cwd, command },
    );
    const address = await listening;
    const { pid } = JSON.parse(output.out.split('\n')[0] ?? '') as { pid: number };
    // Only the pid of npm is known to the kit. Without this, a failed test would leave the server running.
    onTestFinished(() => {
      if (child.exitCode === null) process.kill(pid, 'SIGKILL');
    });

    expect((await fetch(`${address}/ready`)).status).toBe(200);
    expect(await (await fetch(`${address}/services?wsdl`)).text()).toContain('</definitions>');
    const page = await (await fetch(`${address}/admin?f=html`, { headers: { accept: 'text/html' } })).text();
    const [, stylesheet = ''] = /<link rel="stylesheet" href="([^"]+)"/.exec(page) ?? [];
    const served = await fetch(new URL(stylesheet, address));
    expect([served.status, served.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);

    child.kill('SIGTERM');
    expect(await exited).toBe(0);
    expect(output.out).toContain('"msg":"closed"');
    // Signal 0 only asks whether the process exists.
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});
