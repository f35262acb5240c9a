// The structure of the code: imports point in one direction, rules do no I/O, and few files touch the outside.
import { readFileSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('../', import.meta.url);

/** The files of src, such as `webhooks/queue/delivery.ts`. */
const sources = readdirSync(new URL('src/', root), {
  recursive: true,
  encoding: 'utf8',
})
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'));

/** From the bottom to the top. */
const layers = ['lib', 'store', 'features', 'protocols', 'edges', 'process'] as const;
type Layer = (typeof layers)[number];

const layersOfFolders: Readonly<Record<string, Layer>> = {
  lib: 'lib',
  store: 'store',
  http: 'protocols',
  soap: 'protocols',
  rest: 'protocols',
  console: 'protocols',
  config: 'process',
  app: 'process',
  commands: 'process',
  testing: 'process',
  '': 'process',
};

/** The first folder of the file. Empty for an entry point. */
function folderOf(name: string): string {
  return name.includes('/') ? (name.split('/')[0] ?? '') : '';
}

/** The layer follows from the folder. The edges of a feature are its pages, and the files that its protocols name. */
function layerOf(name: string): Layer {
  const layer = layersOfFolders[folderOf(name)];
  if (layer !== undefined) return layer;
  const isEdge = posix.dirname(name).endsWith('/pages') || /(^|[/.])(rest|soap)\.ts$/.test(name);
  return isEdge ? 'edges' : 'features';
}

const textOf = (name: string) => readFileSync(new URL(`src/${name}`, root), 'utf8');

const levelOf = (name: string) => layers.indexOf(layerOf(name));

/** The parts of the largest feature, from the bottom to the top. Its edges are above them. */
const partsOfUpgrades = ['schedule', 'versions', 'executors', 'planning', 'jobs', 'starting'];

/** Undefined for a file outside of the feature. */
function upgradesLevelOf(name: string): number | undefined {
  const [feature, part = ''] = name.split('/');
  if (feature !== 'upgrades') return undefined;
  return partsOfUpgrades.includes(part) ? partsOfUpgrades.indexOf(part) : partsOfUpgrades.length;
}

const isOfFeature = (name: string) => ['features', 'edges'].includes(layerOf(name));

function importsOf(name: string): string[] {
  const found = textOf(name).matchAll(/^(?:import|export)\s[^;]*?from '([^']+)';|import\('([^']+)'\)/gms);
  return [...found].map(([, from, dynamic]) => from ?? dynamic ?? '');
}

function localImportsOf(name: string): string[] {
  return importsOf(name)
    .filter((path) => path.startsWith('.'))
    .map((path) => posix.join(posix.dirname(name), path));
}

/** The files of src that break a rule, each with what breaks it. */
function findOffenders(find: (name: string) => readonly string[]): Record<string, readonly string[]> {
  const found = sources.map((name) => [name, find(name)] as const);
  return Object.fromEntries(found.filter(([, offences]) => offences.length > 0));
}

/** The matches of the pattern in the text of each file, except in these files. */
const findInTexts = (pattern: RegExp, ...except: readonly string[]) =>
  findOffenders((name) => (except.includes(name) ? [] : (textOf(name).match(pattern) ?? [])));

describe('a file of src', () => {
  it('is found', () => {
    expect(sources.length).toBeGreaterThan(200);
    expect(localImportsOf('app/process.ts')).toContain('app/start.ts');
  });

  it('imports only from its own layer and those below', () => {
    const offenders = findOffenders((name) =>
      localImportsOf(name).filter((target) => levelOf(target) > levelOf(name)),
    );
    expect(offenders).toEqual({});
  });

  it('imports no feature if it is shared', () => {
    const isShared = (name: string) => ['lib', 'store', 'protocols'].includes(layerOf(name));
    const offenders = findOffenders((name) =>
      isShared(name) ? localImportsOf(name).filter(isOfFeature) : [],
    );
    expect(offenders).toEqual({});
  });

  it('of the upgrades imports only from its own part and those below', () => {
    const offenders = findOffenders((name) =>
      localImportsOf(name).filter(
        (target) => (upgradesLevelOf(target) ?? -1) > (upgradesLevelOf(name) ?? Infinity),
      ),
    );
    expect(offenders).toEqual({});
  });

  it('does no I/O in a feature, except where it stores, sends, signs in and performs steps', () => {
    const doesIo = /\/(sending|executors|executors\/(kubernetes|images)|oidc|postgres)$/;
    const allowed = ['zod', 'node:crypto', 'node:net'];
    const isForbidden = (path: string) => !path.startsWith('.') && !allowed.includes(path);
    const offenders = findOffenders((name) =>
      layerOf(name) === 'features' && !doesIo.test(posix.dirname(name))
        ? importsOf(name).filter(isForbidden)
        : [],
    );
    expect(offenders).toEqual({});
  });

  it('reads no clock, random number or process variable except through the runtime', () => {
    // The timeout of a socket belongs to the connection, which is real even in tests.
    const reads =
      /\bDate\.now|\bnew Date\(\)|(?<!\bsocket\.)\bset(Timeout|Interval)\(|\bMath\.random|\bprocess\./g;
    expect(findInTexts(reads, 'lib/runtime.ts', 'main.ts', 'app/process.ts', 'cli.ts')).toEqual({});
  });

  it('opens with a sentence that says what it is', () => {
    expect(sources.filter((name) => !/^\/\/ \S/.test(textOf(name)))).toEqual([]);
  });

  it('has a name that says what is in it', () => {
    expect(
      sources.filter((name) => /(^|\/)(utils?|helpers?|common|misc|index)(\/|\.ts$)/.test(name)),
    ).toEqual([]);
  });

  it('declares interfaces only to extend those of another module, or to be extended', () => {
    expect(findInTexts(/^(export )?interface \w+/gm, 'store/store.ts', 'store/transaction.ts')).toEqual({});
  });

  it('cites no document outside the repository', () => {
    expect(findInTexts(/\((contract|spec) [0-9]/g)).toEqual({});
  });
});

it('only the entry points import the test control', () => {
  const importers = sources.filter(
    (name) =>
      folderOf(name) !== 'testing' && localImportsOf(name).some((target) => folderOf(target) === 'testing'),
  );
  expect(importers.sort()).toEqual(['cli.ts', 'main.ts', 'package.ts']);
});

it('no file imports itself through others', () => {
  const state = new Map<string, 'open' | 'done'>();
  const cycles: string[] = [];
  const visit = (name: string, path: readonly string[]): void => {
    if (state.get(name) === 'done') return;
    if (state.get(name) === 'open') {
      cycles.push([...path.slice(path.indexOf(name)), name].join(' → '));
      return;
    }
    state.set(name, 'open');
    for (const target of localImportsOf(name)) visit(target, [...path, name]);
    state.set(name, 'done');
  };
  for (const name of sources) visit(name, []);
  expect(cycles).toEqual([]);
});

it('docs/architecture.md describes every folder of src, and no other', () => {
  const document = readFileSync(new URL('docs/architecture.md', root), 'utf8');
  const [, section = ''] = /^## Folders\n(.*?)^## /ms.exec(document) ?? [];
  const items = section.split(/^- /m).map((item) => item.split(':', 1)[0] ?? '');
  const described = items.flatMap((names) =>
    [...names.matchAll(/`src\/([\w/-]+)\/`/g)].map(([, folder]) => folder ?? ''),
  );
  const folders = new Set(sources.map((name) => posix.dirname(name)).filter((folder) => folder !== '.'));
  expect(described.sort()).toEqual([...folders].sort());
});
