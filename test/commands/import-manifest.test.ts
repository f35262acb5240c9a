// Tests `steward import-manifest`: a manifest from a file and from a server is printed as importManifest stores it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { CommandError } from '../../src/commands/command-error.ts';
import { importManifest } from '../../src/commands/import-manifest.ts';
import { startServer } from '../kit/server.ts';

it('prints what importManifest accepts, from a server and from a file', async () => {
  const server = await startServer();
  onTestFinished(() => server.close());
  const token = server.token('administrator');
  const source = `${await server.listen()}/admin/system/upgrades/available?f=json`;
  const text = await importManifest({ source, token });
  const available = (
    await server.get('/admin/system/upgrades/available', { authorization: `Bearer ${token}` })
  ).json<{ id: string }[]>();
  expect((JSON.parse(text) as { id: string }[]).map(({ id }) => id)).toEqual(available.map(({ id }) => id));
  const manifestFile = { name: 'manifest.json', content: text };
  const imported = await server.postParts('/admin/system/upgrades/importManifest', { manifestFile }, token);
  expect(imported.json()).toEqual({ status: 'success' });

  const directory = mkdtempSync(join(tmpdir(), 'steward-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'manifest.json');
  writeFileSync(path, JSON.stringify({ versions: JSON.parse(text) as unknown }));
  expect(await importManifest({ source: path, token: undefined })).toBe(text);
  await expect(importManifest({ source, token: undefined })).rejects.toThrow(
    'The server answered 401. Give a valid token in STEWARD_TOKEN or with --token-file.',
  );
  await expect(importManifest({ source: `${path}.none`, token: undefined })).rejects.toThrow(
    'cannot be read',
  );
});

it('lists all problems of a manifest', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'steward-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'manifest.json');
  writeFileSync(path, '[{"id":"rel_1","type":"release"},{"id":"pat_1","type":"patch"}]');
  const failed = await importManifest({ source: path, token: undefined }).catch((error: unknown) => error);
  expect((failed as CommandError).problems.join()).toMatch(/\[0\]\.version[^]*\[1\]\.version/);
});
