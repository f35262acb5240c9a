// How the executor behaves while the API server is down, slow, or refuses requests for a while.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectCluster } from '../../src/upgrades/executors/kubernetes/cluster.ts';
import { freshRelease } from '../kit/sample-manifest.ts';
import type { Act } from './faults.ts';
import { fast } from './executor.ts';
import { contextOf, openDeployment, workload } from './single-deployment.ts';

describe('an API server', () => {
  it.each<[string, Act]>([
    ['has too many requests', { status: 429, headers: { 'retry-after': '1' } }],
    ['has an internal error', { status: 500 }],
    ['is unavailable', { status: 503 }],
    ['waits for its database in vain', { status: 504 }],
    ['closes the connection before the request', 'cut'],
    ['closes the connection after the request', 'swallow'],
    ['does not answer', 'hang'],
    ['refuses the credentials', { status: 401 }],
    ['refuses the permission', { status: 403 }],
  ])('that %s once gets the request again', async (_what, act) => {
    const { on, start, image } = await openDeployment();
    const executor = start({ ...fast(), patienceMs: 300_000 });
    await executor.perform('launch', contextOf());
    for (const method of ['GET', 'PATCH', 'PUT']) on.faults.inject({ method, act });
    await executor.apply(workload, contextOf());
    for (const method of ['GET', 'PATCH', 'PUT']) on.faults.inject({ method, act });
    await executor.verify(workload, contextOf());
    expect(await image()).toBe('a:2');
    on.faults.inject({ act });
    await executor.release('job');
  });

  const patient = () => {
    const options = { ...fast(), patienceMs: 2_000_000 };
    return { options, outage: () => options.runtime.sleep(40_000) };
  };

  it('that is down for longer than the Lease is valid delays a step, but does not fail it', async () => {
    const { on, start, image } = await openDeployment();
    const { options, outage } = patient();
    const executor = start(options);
    await executor.apply(workload, contextOf());
    await on.faults.down();
    const verified = executor.verify(workload, contextOf());
    await outage();
    await on.faults.up();
    await verified;
    expect(await image()).toBe('a:2');
    await on.faults.down();
    const reverted = executor.rollback(workload, contextOf());
    await outage();
    await on.faults.up();
    await reverted;
    expect(await image()).toBe('a:1');
  });

  it('that refuses the credentials just after a restart gets the request again', async () => {
    const { on, start } = await openDeployment();
    const { options, outage } = patient();
    const executor = start(options);
    await executor.perform('launch', contextOf());
    await on.faults.down();
    const applied = executor.apply(workload, contextOf());
    await outage();
    on.faults.inject({ act: { status: 403 } });
    await on.faults.up();
    await applied;
  });

  it('that refuses the credentials just after a restart gets the request of a new process again', async () => {
    const { on, start, image } = await openDeployment();
    const { options, outage } = patient();
    await on.faults.down();
    // The process has taken over the job, and has had no answer yet.
    const applied = start(options).apply(workload, contextOf());
    await outage();
    on.faults.inject({ act: { status: 403 }, times: 3 });
    await on.faults.up();
    expect(await applied).toEqual({ isPatched: true });
    expect(await image()).toBe('a:2');
  });

  it('that refuses the permission for three seconds does not fail a step, unless it did for ten before in the run', async () => {
    const { on, start, patches } = await openDeployment();
    const options = fast();
    const executor = start(options);
    await executor.perform('launch', contextOf());
    const refuse = () => on.faults.inject({ method: 'PATCH', act: { status: 403 }, times: Infinity });
    const allow = refuse();
    const applied = executor.apply(workload, contextOf());
    await options.runtime.sleep(3_000);
    allow();
    await applied;
    const allowLater = refuse();
    await expect(executor.rollback(workload, contextOf())).rejects.toThrow('(403)');
    const before = patches().length;
    await expect(executor.rollback(workload, contextOf())).rejects.toThrow('(403)');
    expect(patches()).toHaveLength(before + 1);
    const resumed = executor.rollback(workload, { ...contextOf(), runStartedAt: options.runtime.now() });
    await options.runtime.sleep(3_000);
    allowLater();
    await resumed;
  });

  it('that is slow has ten seconds for each answer', async () => {
    const { on, start } = await openDeployment();
    const options = fast();
    const slow = () => options.runtime.sleep(7_000);
    on.faults.inject({ path: /^\/version/, act: slow, times: Infinity });
    const { planMoves } = await start(options).inventory();
    expect(planMoves([], { release: freshRelease, patches: [] }).problems).toEqual([]);
    expect(on.faults.requests.filter(({ path }) => path === '/version')).toHaveLength(1);
  });

  it('that does not answer is a problem that names the request', async () => {
    const { on, start } = await openDeployment();
    on.faults.inject({ path: /\/statefulsets/, act: 'hang', times: Infinity });
    const { planMoves } = await start(fast()).inventory();
    expect(planMoves([], { release: freshRelease, patches: [] }).problems).toEqual([
      {
        field: 'cluster',
        isTransient: true,
        message: expect.stringMatching(
          /^the API server is too slow: there was no answer to "list statefulsets" within \d+ seconds\.$/,
        ) as string,
      },
    ]);
  });

  it('that stays down fails the step', async () => {
    const { on, start } = await openDeployment();
    const executor = start(fast());
    await executor.perform('launch', contextOf());
    await on.faults.down();
    await expect(executor.apply(workload, contextOf())).rejects.toThrow(
      /^the API server cannot be reached: .*ECONNREFUSED/,
    );
    await executor.release('job');
    await on.faults.up();
  });

  it('that refuses the credentials from the start, or permanently, fails the step', async () => {
    const { on, start, patches } = await openDeployment();
    const moved = { ...workload, parts: [{ container: 'a', image: 'a:1', formerImage: 'a:0' }] };
    const removeFault = on.faults.inject({ act: { status: 401 }, times: Infinity });
    await expect(start(fast()).perform('launch', contextOf())).rejects.toThrow(
      /^the API server refuses \(401\): it does not accept the credentials of Steward\. Their ServiceAccount or namespace may have been deleted\.$/,
    );
    // A caller of `plan` waits for the response, so it gets the request again for three seconds only.
    const before = on.faults.requests.length;
    await start(fast()).inventory();
    const tries = on.faults.requests.length - before;
    expect(tries).toBeGreaterThan(1);
    expect(tries).toBeLessThan(8);
    removeFault();
    const executor = start(fast());
    await executor.perform('launch', contextOf());
    on.faults.inject({ method: 'PATCH', act: { status: 403 }, times: Infinity });
    await expect(executor.apply(workload, contextOf())).rejects.toThrow(/^the API server refuses \(403\)/);
    await expect(executor.rollback(moved, contextOf())).rejects.toThrow(/^the API server refuses \(403\)/);
    expect(patches().every(({ status }) => status === 403)).toBe(true);
  });

  it('that refuses the content of a request does not get it again', async () => {
    const { on, start, patches } = await openDeployment();
    on.faults.inject({ method: 'PATCH', act: { status: 422 } });
    await expect(start().apply(workload, contextOf())).rejects.toThrow(
      /^the API server refuses \(422\): injected 422/,
    );
    expect(patches()).toHaveLength(1);
  });
});

describe('a kubeconfig that is replaced', () => {
  type Config = { clusters: { cluster: object }[]; users: { user: object }[] };

  function rewrite(file: string, cluster: object, user: object): void {
    const config = JSON.parse(readFileSync(file, 'utf8')) as Config;
    const [first] = config.clusters;
    const clusters = [{ ...first, cluster: { ...first?.cluster, ...cluster } }];
    writeFileSync(file, JSON.stringify({ ...config, clusters, users: [{ name: 'nobody', user }] }));
  }

  async function openWithToken(isFile: boolean) {
    const { on, start } = await openDeployment();
    const file = join(dirname(on.kubeconfig), 'token');
    const setToken = (token: string, cluster = {}) => {
      writeFileSync(file, token);
      const authProvider = { name: 'tokenFile', config: { tokenFile: file } };
      rewrite(on.kubeconfig, cluster, isFile ? { 'auth-provider': authProvider } : { token });
    };
    setToken('one');
    const executor = start(fast());
    await executor.perform('launch', contextOf());
    on.faults.inject({ token: 'one', act: { status: 401 }, times: Infinity });
    return { on, executor, setToken };
  }

  it.each([true, false])(
    'has its new token read after a refusal (in a file of its own: %s)',
    async (isFile) => {
      const { executor, setToken } = await openWithToken(isFile);
      setToken('two');
      expect(await executor.apply(workload, contextOf())).toEqual({ isPatched: true });
    },
  );

  it('keeps its API server', async () => {
    const { on, executor, setToken } = await openWithToken(false);
    setToken('two', { server: 'http://127.0.0.1:1' });
    await expect(executor.apply(workload, contextOf())).rejects.toThrow(/\(401\)/);
    expect(on.faults.requests.at(-1)?.token).toBe('one');
  });

  it('has its new certificate authority read; a wrong certificate stays refused', async () => {
    const { on } = await openDeployment();
    const { runtime } = fast();
    const options = { cwd: dirname(on.kubeconfig), stdio: 'ignore' } as const;
    const read = (name: string) => readFileSync(join(options.cwd, name), 'utf8');
    const certificateOf = (name: string) => {
      const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
      const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
      execFileSync('openssl', ['req', '-x509', ...key, ...names, '-keyout', 'key', '-out', 'crt'], options);
      return { key: read('key'), cert: read('crt') };
    };
    const former = certificateOf('former');
    const server = createServer(former, (_request, response) => response.end('{"gitVersion":"v1.36.4"}'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const trust = (cert: string) => {
      const authority = Buffer.from(cert).toString('base64');
      const cluster = { server: address, 'certificate-authority-data': authority };
      rewrite(on.kubeconfig, { ...cluster, 'insecure-skip-tls-verify': false }, {});
    };
    trust(former.cert);
    const connection = connectCluster({ runtime, kubeconfig: on.kubeconfig, namespace: undefined });
    const readVersion = () => connection.withRetry({ retryMs: 3_000 }).readVersion();
    expect(await readVersion()).toBe('v1.36.4');
    const next = certificateOf('next');
    server.setSecureContext(next);
    await expect(readVersion()).rejects.toThrow(/^the API server cannot be reached: self-signed certificate/);
    trust(next.cert);
    expect(await readVersion()).toBe('v1.36.4');
  });
});
