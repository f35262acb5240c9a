// Tests the package: what `npm pack` produces works in an empty project with nothing but its production dependencies.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkout, createProject, execute } from '../kit/package.ts';

const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as unknown;

type Manifest = { name: string; version: string; peerDependencies: Record<string, string> };
const manifest = readJson(join(checkout, 'package.json')) as Manifest;

const { project, packed, install } = await createProject();
writeFileSync(join(project, '.env'), 'ADMIN_PATH=/from-file\n');
afterAll(() => rmSync(project, { recursive: true }));

async function run(...args: readonly string[]): Promise<string> {
  const { stdout } = await execute(process.execPath, args, { cwd: project, env: { PATH: process.env.PATH } });
  return stdout;
}

describe('the packed file', () => {
  it('contains the build and its declarations, nothing of the sources, and is small', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'bin/steward.js',
        'dist/package.js',
        'dist/package.d.ts',
      ]),
    );
    expect(paths.filter((path) => !/^(bin|dist)\/|^(LICENSE|README\.md|package\.json)$/.test(path))).toEqual(
      [],
    );
    expect(paths.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))).toEqual([]);
    expect(packed.size).toBeLessThan(1024 ** 2);
    expect(packed.unpackedSize).toBeLessThan(4 * 1024 ** 2);
  });

  it('starts a server in the process, without signal handlers, .env or variables of the process', async () => {
    const program = `
      import { startSteward } from 'steward';
      process.env.ADMIN_PATH = '/from-environment';
      const steward = await startSteward({
        env: { TOKENS_PATH: '/sign-in' },
        catalog: { services: [{ serviceName: 'Depths', type: 'MapServer' }] },
      });
      const read = async (path) => (await fetch(steward.url + path)).json();
      const report = {
        ready: await read('/ready'),
        catalog: await read('/rest/services'),
        root: await read('/admin?token=' + steward.adminToken),
        tokens: (await fetch(steward.url + '/sign-in')).status,
        clock: typeof (await steward.control.clock()).now,
        refused: await startSteward({ env: { PORTS: '1' } }).catch((error) => error.message),
        proxied: await startSteward({ env: { PUBLIC_URL: 'https://steward.example' } }).catch((error) => error.message),
        handlers: ['SIGTERM', 'SIGINT', 'uncaughtException'].map((name) => process.listenerCount(name)),
      };
      const second = await startSteward({ env: { TEST_CONTROL: 'false' } });
      report.control = await second.control.reset().catch((error) => error.message);
      await Promise.all([steward.stop(), second.stop(), steward.stop()]);
      console.log(JSON.stringify(report));`;
    writeFileSync(join(project, 'program.js'), program);
    // The process ends by itself once the servers are stopped.
    expect(JSON.parse(await run('program.js'))).toEqual({
      ready: expect.objectContaining({ status: 'ready', version: manifest.version }) as unknown,
      catalog: { currentVersion: 10.91, folders: [], services: [{ name: 'Depths', type: 'MapServer' }] },
      root: expect.objectContaining({ currentVersion: '10.9.1' }) as unknown,
      tokens: 200,
      clock: 'number',
      refused: 'Steward has no variable PORTS.',
      proxied: expect.stringMatching(/^TEST_CONTROL_TOKEN must be given/) as unknown,
      handlers: [0, 0, 0],
      control: expect.stringContaining('Test control is off.') as unknown,
    });
  });

  it('upgrades a cluster only with the Kubernetes client, and names the command that installs it', async () => {
    const program = `
      import { startSteward } from 'steward';
      const env = { UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG: 'kubeconfig' };
      await startSteward({ env }).catch((error) => console.log(error.message));`;
    writeFileSync(join(project, 'cluster.js'), program);
    writeFileSync(join(project, 'kubeconfig'), '{}');
    const client = '@kubernetes/client-node';
    const [, version = ''] = /^~(\d+\.\d+)\.\d+$/.exec(manifest.peerDependencies[client] ?? '') ?? [];
    expect(await run('cluster.js')).toBe(
      `UPGRADE_EXECUTOR=kubernetes needs the package ${client} ${version}: install it with \`npm install ${client}@${version}\`.\n`,
    );
    install(client);
    expect(await run('cluster.js')).toBe('KUBECONFIG names no cluster in its current context.\n');
  });

  it('delivers webhooks while packages are missing, and later if undici was missing at the start', async () => {
    const program = `
      import { existsSync, renameSync } from 'node:fs';
      import { createServer } from 'node:http';
      import { createRequire } from 'node:module';
      import { startSteward } from 'steward';
      const move = (name, to) => renameSync('node_modules' + name, 'node_modules' + to);
      const receiver = createServer((request, response) => response.end()).listen(0, '127.0.0.1');
      const steward = await startSteward({ env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' } });
      const headers = { authorization: 'Bearer ' + steward.adminToken };
      const at = steward.url + '/admin/services/webhooks/';
      const post = async (path, fields) =>
        (await fetch(at + path, { method: 'POST', headers, body: new URLSearchParams(fields) })).json();
      const read = async (path) => (await fetch(at + path, { headers })).json();
      const until = async (path, isDone) => {
        for (;;) {
          const answer = await read(path);
          if (isDone(answer)) return answer;
        }
      };
      await post('settings', { notificationAttempts: '1', numberOfFailures: '1' });
      const hookUrl = 'http://127.0.0.1:' + receiver.address().port;
      const { webhook } = await post('create', { name: 'hook', hookUrl, changeTypes: '*' });
      const report = {};
      if (existsSync('node_modules/undici')) {
        // The server loads the library and its parser with the first webhook, without an event.
        const { cache } = createRequire(import.meta.url);
        while (!Object.keys(cache).some((file) => file.includes('llhttp_'))) await read('settings');
        move('', '-away');
      }
      await post('publish', { changeType: 'Tested' });
      if (existsSync('node_modules/undici-away')) {
        await steward.control.advanceClock(1);
        const { deliveries } = await read(webhook.id + '/deliveries');
        report.before = deliveries[0].attempts;
        move('/undici-away', '/undici');
        await steward.control.advanceClock(20_000);
      }
      const done = await until(webhook.id + '/deliveries', ({ deliveries }) => deliveries[0].state !== 'pending');
      report.attempts = done.deliveries[0].attempts.map(({ status }) => status);
      report.active = (await read(webhook.id)).active;
      if (existsSync('node_modules-away')) move('-away', '');
      await steward.stop();
      receiver.close();
      console.log(JSON.stringify(report));`;
    writeFileSync(join(project, 'delivers.js'), program);
    const delivered = { attempts: [200], active: true };
    expect(JSON.parse(await run('delivers.js'))).toEqual(delivered);
    const modules = join(project, 'node_modules');
    renameSync(join(modules, 'undici'), join(modules, 'undici-away'));
    expect(JSON.parse(await run('delivers.js'))).toEqual({ ...delivered, before: [] });
  });

  it('is installed by the commands of the page beneath a folder that has packages already', async () => {
    const page = readFileSync(join(checkout, 'docs/operate/backup-and-upgrade.md'), 'utf8');
    const [, script = ''] = /^(VERSION=[^]*?)^for /m.exec(page) ?? [];
    const root = mkdtempSync(join(tmpdir(), 'steward-installed-'));
    mkdirSync(join(root, 'steward/node_modules'), { recursive: true });
    // It needs no other package, and so no registry.
    const { name, version } = manifest;
    mkdirSync(join(root, 'package'));
    writeFileSync(join(root, 'package/package.json'), JSON.stringify({ name, version }));
    await execute('tar', ['-czf', `steward-${version}.tgz`, 'package'], { cwd: root });
    const env = { PATH: process.env.PATH, HOME: root };
    await execute('bash', ['-ec', script.replaceAll('/opt', root)], { cwd: root, env });
    const installed = join(root, 'steward/current/node_modules/steward/package.json');
    expect(readJson(installed)).toEqual({ name, version });
    rmSync(root, { recursive: true });
  });

  it('has the command steward', async () => {
    const command = join('node_modules/steward', 'bin/steward.js');
    expect(await run(command, '--version')).toMatch(/^\d+\.\d+\.\d+( \([0-9a-f]{12,}(-dirty)?\))?\n$/);
    expect(await run(command, '--help')).toContain('steward import-catalog ADDRESS');
    await expect(run(command, 'import-catalogue')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no command import-catalogue.') as unknown,
    });
    await expect(
      run(command, 'import-catalog', '--access', 'all', 'http://127.0.0.1:1/'),
    ).rejects.toMatchObject({
      stderr: '--access must be one of public, organization, administrators.\n',
    });
    await expect(run(command, 'import-catalog', '\u001B[2J')).rejects.toMatchObject({
      stderr: expect.stringMatching(/^The address must be \P{Cc}*\uFFFD\[2J\n$/u) as unknown,
    });
    await expect(run(command, 'import-catalog', '--token-file', '--access')).rejects.toMatchObject({
      stderr: expect.stringMatching(/argument is ambiguous\.\n {2}Did you forget/) as unknown,
    });
  });

  it('starts a server by the command steward, which does not read .env', async () => {
    const env = { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'silent' };
    const child = spawn('node_modules/steward/bin/steward.js', { cwd: project, env });
    const ended = once(child, 'close');
    let printed = '';
    for await (const chunk of child.stderr) {
      printed += String(chunk);
      if (printed.includes('admin ')) child.kill('SIGTERM');
    }
    expect(printed).toMatch(/admin {4}http:\/\/localhost:\d+\/admin\n/);
    expect(await ended).toEqual([0, null]);
  });

  it('has types that a strict program compiles with', async () => {
    const program = `
      import { type Steward, type StewardControl, startSteward } from 'steward';
      const steward: Steward = await startSteward({ env: { REQUIRE_TOKENS: 'true' } });
      const control: StewardControl = steward.control;
      const hits: number = (await control.addFailure({ match: {}, respond: { error: 'conflict' } })).hits;
      // @ts-expect-error -- there is no such kind
      await control.addFailure({ match: {}, respond: { error: 'nonsense' } });
      export const result: [number, string] = [hits, steward.adminToken];`;
    writeFileSync(join(project, 'program.ts'), program);
    const compiler = join(checkout, 'node_modules/@typescript/native/bin/tsc');
    const options = '--noEmit --strict --target es2023 --lib es2023 --module nodenext'.split(' ');
    await run(compiler, ...options, 'program.ts');
  });
});

describe('a release', () => {
  type Locked = { version: string; integrity?: string; dev?: true };
  const lock = readJson(join(checkout, 'package-lock.json')) as { packages: Record<string, Locked> };
  // The first entry is Steward itself.
  const locked = Object.entries(lock.packages).slice(1);
  /** Packages as `name@version`, each once: npm installs some in two places. */
  const toPackages = (entries: typeof locked): string[] => [
    ...new Set(entries.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`)),
  ];
  /** What `npm ci --omit=dev` installs. */
  const production = toPackages(locked.filter(([, { dev }]) => !dev));

  type Bill = { metadata: { component: { purl: string } }; components: { 'bom-ref': string }[] };
  const readBill = (name: string) => readJson(join(project, name)) as Bill;
  const listed = ({ components }: Bill) => [...new Set(components.map((one) => one['bom-ref']))];

  beforeAll(() => execute(process.execPath, ['scripts/sbom.js', project], { cwd: checkout }));

  it('has no Kubernetes client and no types among its production packages', () => {
    expect(production.filter((name) => /^@(kubernetes|types)\//.test(name))).toEqual([]);
    expect(production.length).toBeLessThan(110);
  });

  it('has a bill of materials that lists exactly the production packages', () => {
    const bill = readBill(`steward-${manifest.version}.cdx.json`);
    expect(bill.metadata.component.purl).toBe(`pkg:npm/steward@${manifest.version}`);
    expect(listed(bill).toSorted()).toEqual(production.toSorted());
  });

  it('has another one that also lists the Kubernetes client, in the versions of the lock file', () => {
    const withClient = listed(readBill(`steward-${manifest.version}-kubernetes.cdx.json`));
    const [client = ''] = toPackages(locked).filter((name) => name.startsWith('@kubernetes/client-node@'));
    expect(withClient).toEqual(expect.arrayContaining([client, ...production]));
    expect(toPackages(locked)).toEqual(expect.arrayContaining(withClient));
    expect(withClient.filter((name) => name.startsWith('vitest@'))).toEqual([]);
  });

  it('pins every package to a hash of its content', () => {
    const unpinned = locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'));
    expect(unpinned.map(([path]) => path)).toEqual([]);
  });
});
