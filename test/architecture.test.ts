// The house rules that a compiler does not hold: imports point one way, and few files touch the outside.
import { readFileSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('../', import.meta.url);
const sources = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'));
const textOf = (name: string) => readFileSync(new URL(`src/${name}`, root), 'utf8');

const engines = [
  'alarm.ts',
  'deadline.ts',
  'tasks.ts',
  'auth/tokenService.ts',
  'catalog/catalogCache.ts',
  'site/metrics.ts',
  'store/memory.ts',
  'store/memory-queue.ts',
  'webhooks/deliveryWorker.ts',
  'webhooks/httpClient.ts',
  'webhooks/figures.ts',
  'webhooks/eventPublisher.ts',
  'webhooks/resolver.ts',
  'upgrades/runner.ts',
  'upgrades/watcher.ts',
  'upgrades/executors/simulated.ts',
  ...[
    'kubernetes',
    'kubernetes/calls',
    'kubernetes/cluster',
    'kubernetes/lease',
    'kubernetes/lock',
    'kubernetes/survey',
  ].map((name) => `upgrades/executors/${name}.ts`),
  'upgrades/executors/kubernetes/watch.ts',
];
const ports = ['runtime.ts', 'store/store.ts', 'upgrades/executors/executor.ts'];

/** Rules 0, ports 1, engines 2, kits 3, edges 4, the process 5. */
function levelOf(name: string): number {
  if (name === 'main.ts' || name === 'app.ts' || name === 'config.ts') return 5;
  if (ports.includes(name)) return 1;
  if (engines.includes(name) || name.startsWith('store/postgres/')) return 2;
  if (/^(rest|soap)\//.test(name)) return 3;
  if (
    /(^|\/|\.)(rest|soap|page|probes|assets|errors|http|response|account|short-way)\.ts$/.test(name) &&
    name.includes('/')
  )
    return 4;
  return 0;
}

function importsOf(name: string): string[] {
  const found = textOf(name).matchAll(/^(?:import|export)\s[^;]*?from '([^']+)';|import\('([^']+)'\)/gms);
  return [...found].map(([, from, dynamic]) => from ?? dynamic ?? '');
}

const featureOf = (name: string) => (name.includes('/') ? (name.split('/')[0] ?? '') : '');

describe.each(sources)('src/%s', (name) => {
  const local = importsOf(name)
    .filter((path) => path.startsWith('.'))
    .map((path) => posix.join(posix.dirname(name), path));

  it('imports only what lies below it', () => {
    const level = levelOf(name);
    const allowed = local.filter((target) => {
      const below = levelOf(target);
      if (level === 3)
        return featureOf(target) === featureOf(name) || (below === 0 && featureOf(target) === '');
      if (level === 4) return below < 4 || featureOf(target) === featureOf(name);
      return below <= level;
    });
    expect(local).toEqual(allowed);
  });

  it('keeps rules free of I/O', () => {
    if (levelOf(name) !== 0) return;
    const outside = importsOf(name).filter((path) => !path.startsWith('.'));
    expect(outside.filter((path) => !['zod', 'node:crypto', 'node:net'].includes(path))).toEqual([]);
  });

  it('reads no clock, chance or process but through its door', () => {
    if (name === 'runtime.ts' || name === 'main.ts') return;
    // The time-out of a connection goes with the connection, which is real even in tests.
    expect(textOf(name)).not.toMatch(
      /\bDate\.now|\bnew Date\(\)|(?<!\bsocket\.)\bset(Timeout|Interval)\(|\bMath\.random|\bprocess\./,
    );
  });

  it('opens with what it is', () => {
    expect(textOf(name)).toMatch(/^\/\/ \S/);
  });

  it('has a name that says what is in it', () => {
    expect(name).not.toMatch(/(^|\/)(utils?|helpers?|common|misc|services|index)(\/|\.ts$)/);
  });
});

it('the README’s map names every source file, and no other', () => {
  const map = /```\nsrc\/\n([\s\S]*?)```/.exec(readFileSync(new URL('README.md', root), 'utf8'))?.[1] ?? '';
  const named: string[] = [];
  let folder = '';
  for (const line of map.split('\n')) {
    const [, indent = '', path = ''] = /^( +)([\w./-]+)/.exec(line) ?? [];
    if (path.endsWith('/')) folder = path;
    else if (path.endsWith('.ts')) named.push(indent.length > 2 ? folder + path : path);
  }
  expect(named.sort()).toEqual([...sources].sort());
});
