// A client generated from openapi.json has typed answers: it compiles, runs against the server, and misuse of an answer does not compile.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import openapiTypescript, { astToString } from 'openapi-typescript';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Server, startServer } from '../kit/server.ts';
import { address } from './openapi-kit.ts';

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const directory = mkdtempSync(join(tmpdir(), 'steward-client-'));
const run = promisify(execFile);

let server: Server;
beforeAll(async () => {
  server = await startServer();
  const document = (await server.get(address)).body;
  writeFileSync(join(directory, 'steward.ts'), astToString(await openapiTypescript(document)));
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(directory, 'node_modules'));
});
afterAll(async () => {
  await server.close();
  rmSync(directory, { recursive: true });
});

async function compile(name: string, source: string): Promise<string> {
  writeFileSync(join(directory, `${name}.ts`), source);
  const options = '--strict --noUncheckedIndexedAccess --skipLibCheck --module nodenext --target es2022';
  try {
    await run(process.execPath, [tsc, ...options.split(' '), '--types', 'node', `${name}.ts`], {
      cwd: directory,
    });
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

const client = `
  import createClient from 'openapi-fetch';
  import type { paths } from './steward.js';
  const [baseUrl = '', token = ''] = process.argv.slice(2);
  export const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
`;

it('compiles, and reads typed answers', async () => {
  const source = `${client}
    const { data: services, error } = await client.GET('/admin/services');
    if (!services) throw new Error(error.error.message);
    const names: string[] = services.services.map(({ serviceName }) => serviceName);
    const { data: status } = await client.GET('/admin/system/upgrades', { params: { query: { wait: 0 } } });
    const state: 'no_upgrade' | 'in_progress' | 'failed' | 'success' | 'cancelled' | undefined = status?.status.state;
    const { data: settings } = await client.POST('/admin/services/webhooks/settings', {
      body: { notificationAttempts: 2 },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    const attempts: number | undefined = settings?.notificationAttempts;
    const { error: refusal } = await client.GET('/admin/services/webhooks/{webhook}', { params: { path: { webhook: 'none' } } });
    const details: string[] | undefined = refusal?.error.details;
    console.log(JSON.stringify({ first: names[0], state, attempts, details }));
  `;
  expect(await compile('client', source)).toBe('');
  const args = [join(directory, 'client.js'), await server.listen(), server.token('administrator')];
  const { stdout } = await run(process.execPath, args);
  expect(JSON.parse(stdout)).toEqual({ first: 'Geometry', state: 'no_upgrade', attempts: 2, details: [] });
}, 60_000);

it('does not compile where an answer is used wrongly', async () => {
  const source = `${client}
    const { data } = await client.GET('/admin/mode');
    export const length = data!.isReadOnly.length;
    export const since = data!.since;
    const { data: versions } = await client.GET('/admin/system/upgrades/available');
    export const installable: string = versions![0]!.installable;
  `;
  const problems = (await compile('wrong', source)).match(/error TS\d+/g);
  expect(problems).toEqual(['error TS2339', 'error TS2339', 'error TS2322']);
}, 60_000);
