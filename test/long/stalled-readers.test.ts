// Clients that do not read their answers do not fill the memory of a server with much data, whatever they ask for. The
// process has the heap of deploy/kubernetes.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type Socket, connect } from 'node:net';
import { expect, it } from 'vitest';
import { startProcess } from '../kit/process.ts';

const adminPassword = 'a password of readers';
const deployment = readFileSync(new URL('../../deploy/kubernetes/deployment.yaml', import.meta.url), 'utf8');
const nodeOptions = /NODE_OPTIONS\s+value: '([^']+)'/.exec(deployment)?.[1] ?? '';
const podMegabytes = Number(/limits:[^}]*?memory: (\d+)Mi/.exec(deployment)?.[1]);

/** 28 MB of texts. */
const services = Array.from({ length: 7_000 }, (_, n) => ({
  serviceName: `Service${n}`,
  type: 'MapServer',
  description: 'x'.repeat(4_000),
}));

const formats = ['json', 'pjson', 'html', 'csv'];
const readersOfEach = 4;

it('every resource in every format', { timeout: 120_000 }, async () => {
  const { child, listening } = startProcess(
    {
      NODE_OPTIONS: nodeOptions,
      ADMIN_PASSWORD: adminPassword,
      CATALOG_FILE: 'catalog.json',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      LOG_LEVEL: 'error',
    },
    { 'catalog.json': JSON.stringify({ folders: [], services }) },
  );
  const address = await listening;
  const body = new URLSearchParams({ username: 'admin', password: adminPassword });
  const signedIn = await fetch(`${address}/tokens/generateToken`, { method: 'POST', body });
  const { token } = (await signedIn.json()) as { token: string };
  const headers = { authorization: `Bearer ${token}` };
  const post = async (path: string, fields: Record<string, string>) => {
    const answer = await fetch(`${address}/admin/${path}`, {
      method: 'POST',
      headers,
      body: new URLSearchParams(fields),
    });
    expect(answer.status, path).toBe(200);
    return (await answer.json()) as Record<string, unknown>;
  };
  const webhook = { hookUrl: 'http://127.0.0.1:9/', changeTypes: 'Large' };
  const ids: Record<string, string> = { serviceName: 'Service0', type: 'MapServer', user: 'admin' };
  for (let n = 0; n < 20; n += 1) {
    const headersOfHook = JSON.stringify({ 'X-One': 'v'.repeat(1_000), 'X-Two': 'v'.repeat(1_000) });
    const created = await post('services/webhooks/create', {
      ...webhook,
      name: `${n}`,
      headers: headersOfHook,
    });
    ids.webhook = created.id as string;
  }
  const payload = JSON.stringify({ text: 'x'.repeat(60_000) });
  for (let n = 0; n < 20; n += 1) await post('services/webhooks/publish', { changeType: 'Large', payload });

  const sockets: Socket[] = [];
  const stall = async (path: string) => {
    const { hostname, port } = new URL(address);
    const socket = connect(Number(port), hostname).pause();
    socket.on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`);
  };
  const document = (await (await fetch(`${address}/admin/openapi.json`)).json()) as {
    paths: Record<string, { get?: object }>;
  };
  const paths = Object.entries(document.paths).filter(([, { get }]) => get !== undefined);
  expect(paths.length).toBeGreaterThan(40);
  for (const [template] of paths) {
    const path = template.replace(/\{(\w+)\}/g, (_whole, name: string) => ids[name] ?? 'none');
    for (const format of formats)
      await Promise.all(
        Array.from({ length: readersOfEach }, () => stall(`${path}?f=${format}&num=1000&wait=0`)),
      );
    expect((await fetch(`${address}/health`)).status, path).toBe(200);
  }
  const peaks: number[] = [];
  const isGrowing = () => peaks.length < 200 || peaks.at(-200) !== peaks.at(-1);
  while (isGrowing()) {
    expect((await fetch(`${address}/health`)).status).toBe(200);
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    peaks.push(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024);
  }
  expect(peaks.at(-1)).toBeLessThan(podMegabytes);
  for (const socket of sockets) socket.destroy();
});
