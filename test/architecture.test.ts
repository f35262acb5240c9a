// The structure of the code: imports point in one direction, rules do no I/O, and few files touch the outside.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { layerOf, layers, sources } from './kit/layers.ts';

const root = new URL('../', import.meta.url);
const textOf = (name: string) => readFileSync(new URL(`src/${name}`, root), 'utf8');

const levelOf = (name: string) => layers.indexOf(layerOf(name));
const folderOf = (name: string) => (name.includes('/') ? (name.split('/')[0] ?? '') : '');

/** Folders that import no feature. */
const shared = ['', 'lib', 'audit', 'http', 'rest', 'soap'];
const isOfFeature = (name: string) => ![...shared, 'store'].includes(folderOf(name));

function importsOf(name: string): string[] {
  const found = textOf(name).matchAll(/^(?:import|export)\s[^;]*?from '([^']+)';|import\('([^']+)'\)/gms);
  return [...found].map(([, from, dynamic]) => from ?? dynamic ?? '');
}

function localImportsOf(name: string): string[] {
  return importsOf(name)
    .filter((path) => path.startsWith('.'))
    .map((path) => posix.join(posix.dirname(name), path));
}

describe.each(sources)('src/%s', (name) => {
  const local = localImportsOf(name);

  it('imports only from its own layer and those below', () => {
    expect(local.filter((target) => levelOf(target) > levelOf(name))).toEqual([]);
  });

  it('imports no feature if it is shared', () => {
    if (!shared.includes(folderOf(name)) || layerOf(name) === 'process' || name === 'records.ts') return;
    expect(local.filter(isOfFeature)).toEqual([]);
  });

  it('imports only rules of features if it belongs to the storage layer', () => {
    if (folderOf(name) !== 'store') return;
    expect(local.filter((target) => isOfFeature(target) && layerOf(target) !== 'rules')).toEqual([]);
  });

  it('does no I/O if it is a rule', () => {
    if (layerOf(name) !== 'rules') return;
    const packages = importsOf(name).filter((path) => !path.startsWith('.'));
    expect(packages.filter((path) => !['zod', 'node:crypto', 'node:net'].includes(path))).toEqual([]);
  });

  it('reads no clock, random number or process variable except through the runtime', () => {
    if (['runtime.ts', 'main.ts', 'cli.ts'].includes(name)) return;
    // The timeout of a socket belongs to the connection, which is real even in tests.
    expect(textOf(name)).not.toMatch(
      /\bDate\.now|\bnew Date\(\)|(?<!\bsocket\.)\bset(Timeout|Interval)\(|\bMath\.random|\bprocess\./,
    );
  });

  it('opens with a sentence that says what it is', () => {
    expect(textOf(name)).toMatch(/^\/\/ \S/);
  });

  it('has a name that says what is in it', () => {
    expect(name).not.toMatch(/(^|\/)(utils?|helpers?|common|misc|index)(\/|\.ts$)/);
  });

  it('cites no document outside the repository', () => {
    expect(textOf(name)).not.toMatch(/\((contract|spec) [0-9]/);
  });
});

it('only the start imports the test control', () => {
  const importers = sources.filter(
    (name) =>
      folderOf(name) !== 'control' && localImportsOf(name).some((target) => folderOf(target) === 'control'),
  );
  // The package re-exports the client, which is no part of the server.
  expect(importers.sort()).toEqual(['start.ts', 'steward.ts']);
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
  const described = [...document.matchAll(/^\| `src\/([\w/-]+)\/` +\|/gm)].map(([, folder]) => folder ?? '');
  const folders = new Set(sources.map((name) => posix.dirname(name)).filter((folder) => folder !== '.'));
  expect(described.sort()).toEqual([...folders].sort());
});
