// A client generated from openapi.json has typed answers: it compiles, runs against the server, and misuse of an
// answer does not compile. The client of docs/guides/clients.md is one of them.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import openapiTypescript, { astToString } from 'openapi-typescript';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { address as documentPath } from '../rest/openapi-kit.ts';

const tsc = fileURLToPath(new URL('../../node_modules/@typescript/native/bin/tsc', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'steward-client-'));
const run = promisify(execFile);

const server = perFile(startServer);
beforeAll(async () => {
  const document = (await server.get(documentPath)).body;
  writeFileSync(join(directory, 'steward.ts'), astToString(await openapiTypescript(document)));
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(directory, 'node_modules'));
});
afterAll(async () => {
  await server.close();
  rmSync(directory, { recursive: true });
});

/** Compiles the programs together; returns the errors, each with the name of its file. */
async function compile(sources: Readonly<Record<string, string>>): Promise<string[]> {
  for (const [file, source] of Object.entries(sources)) writeFileSync(join(directory, file), source);
  const options =
    '--strict --noUncheckedIndexedAccess --skipLibCheck --module nodenext --target es2022 --types node';
  try {
    await run(process.execPath, [tsc, ...options.split(' '), ...Object.keys(sources)], { cwd: directory });
    return [];
  } catch (error) {
    const { stdout } = error as { stdout: string };
    return [...stdout.matchAll(/^(.*)\(.*: (error TS\d+)/gm)].map(([, file, code]) => `${file}: ${code}`);
  }
}

const client = `
  import createClient from 'openapi-fetch';
  import type { paths } from './steward.js';
  const [baseUrl = '', token = ''] = process.argv.slice(2);
  export const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
`;

const good = `${client}
    const { data: services, error } = await client.GET('/admin/services');
    if (!services) throw new Error(error.error.message);
    const names: string[] = services.services.map(({ serviceName }) => serviceName);
    const { data: status } = await client.GET('/admin/system/upgrades', { params: { query: { wait: 0 } } });
    const state: 'no_upgrade' | 'in_progress' | 'failed' | 'success' | 'cancelled' | 'scheduled' | undefined = status?.status.state;
    const { data: settings } = await client.POST('/admin/services/webhooks/settings', {
      body: { notificationAttempts: 2 },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    const attempts: number | undefined = settings?.notificationAttempts;
    const { error: refusal } = await client.GET('/admin/services/webhooks/{webhook}', { params: { path: { webhook: 'none' } } });
    const details: string[] | undefined = refusal?.error.details;
    console.log(JSON.stringify({ first: names[0], state, attempts, details }));
  `;

const wrong = `${client}
    const { data } = await client.GET('/admin/mode');
    export const length = data!.isReadOnly.length;
    export const since = data!.since;
    const { data: versions } = await client.GET('/admin/system/upgrades/available');
    export const installable: string = versions![0]!.installable;
  `;

const guide = readFileSync(new URL('../../docs/guides/clients.md', import.meta.url), 'utf8');
const documented = /^```ts\n(.*?)^```$/ms.exec(guide)?.[1] ?? '';

it('compiles, except where an answer is used wrongly, and reads typed answers', async () => {
  expect(await compile({ 'client.ts': good, 'documented.ts': documented, 'wrong.ts': wrong })).toEqual([
    'wrong.ts: error TS2339',
    'wrong.ts: error TS2339',
    'wrong.ts: error TS2322',
  ]);
  const address = await server.listen();
  const token = server.token('administrator');
  const { stdout } = await run(process.execPath, [join(directory, 'client.js'), address, token]);
  expect(JSON.parse(stdout)).toEqual({ first: 'Geometry', state: 'no_upgrade', attempts: 2, details: [] });
  const env = { STEWARD_URL: address, STEWARD_KEY: token };
  const shown = await run(process.execPath, [join(directory, 'documented.js')], { env });
  expect(shown.stdout).toBe('Boundaries,Boundaries,Depths,Elevation,Parcels,Roads\n');
}, 60_000);
