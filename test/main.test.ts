// The built process as its users run it: starts, answers, stops with nothing left. `npm test` builds it first.
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createDatabase } from './kit/postgres.ts';
import { startProcess } from './kit/process.ts';

describe('the process', () => {
  it('starts with no configuration, tells where everything is, and the password it made up works', async () => {
    const { child, said, exited, listening } = startProcess();
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

  it('prints every problem of its configuration and exits with 1', async () => {
    const { said, exited } = startProcess({ PORT: 'x', LOG_LEVEL: 'loud' });
    expect(await exited).toBe(1);
    expect(said.err).toContain(
      'Steward cannot start:\n  PORT must be an integer from 0 to 65535.\n  LOG_LEVEL must be',
    );
  });

  it('refuses a catalog file with problems, naming each', async () => {
    const files = {
      'catalog.json': JSON.stringify({ services: [{ serviceName: 'x' }, { serviceName: 'y', type: '' }] }),
    };
    const { said, exited } = startProcess({ CATALOG_FILE: 'catalog.json' }, files);
    expect(await exited).toBe(1);
    expect(said.err).toContain('CATALOG_FILE: services[0].type');
    expect(said.err).toContain('CATALOG_FILE: services[1].type');
    const missing = startProcess({ CATALOG_FILE: 'none.json' });
    expect(await missing.exited).toBe(1);
    expect(missing.said.err).toContain('CATALOG_FILE cannot be read');
  });

  it('reads .env, below the environment', async () => {
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

  it('warns of simulated failures that can never happen', async () => {
    const { child, said, exited, listening } = startProcess({ SIMULATED_FAILURES: 'map_server:2,NO_SUCH' });
    await listening;
    await expect.poll(() => said.out).toContain('"names":["NO_SUCH"]');
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('says so when its port is taken', async () => {
    const first = startProcess();
    const { port } = new URL(await first.listening);
    const second = startProcess({ PORT: port });
    expect(await second.exited).toBe(1);
    expect(second.said.err).toContain('EADDRINUSE');
    first.child.kill('SIGTERM');
    expect(await first.exited).toBe(0);
  });

  it('ends when it cannot start, whatever it has opened by then', async () => {
    const { url } = await createDatabase();
    const { said, exited } = startProcess(
      {
        STORE_URL: url,
        ADMIN_PASSWORD: 'a good password',
        UPGRADE_EXECUTOR: 'kubernetes',
        KUBECONFIG: 'kubeconfig',
      },
      { kubeconfig: 'no cluster' },
    );
    expect(await exited).toBe(1);
    expect(said.out).toContain('the store is PostgreSQL');
    expect(said.err).toContain('Steward cannot start: KUBECONFIG names no cluster');
  });
});
