// Attacks by clients that do not read their answers, or send more requests than they read answers.
import { setTimeout as pause } from 'node:timers/promises';
import { URLSearchParams } from 'node:url';
import { FormData, fetch } from 'undici';
import { addServices } from './catalog.js';
import { open, write } from './sockets.js';

const requestText = (path, token) =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${token ? `Authorization: Bearer ${token}\r\n` : ''}\r\n`;

/** Sends the text on new connections that read nothing, and returns them. */
async function stall(baseUrl, count, text) {
  const connections = await Promise.all(Array.from({ length: count }, () => open(baseUrl)));
  for (const connection of connections) {
    connection.socket.pause();
    await write(connection, text);
  }
  return connections;
}

/** Keeps connections open for as long as the attack takes. */
async function stallFor({ baseUrl, seconds }, count, text) {
  const connections = await stall(baseUrl, count, text);
  await pause(seconds * 1000);
  const closed = connections.filter(({ socket }) => socket.destroyed).length;
  for (const { socket } of connections) socket.destroy();
  return { connections: count, closed };
}

const pipelined = (path) => (target) => stallFor(target, 40, requestText(path).repeat(1_900));

async function post({ baseUrl, token }, path, fields) {
  const body = new URLSearchParams(fields);
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${baseUrl}/admin/${path}`, { method: 'POST', headers, body })).json();
}

async function upload({ baseUrl, token }) {
  const body = new FormData();
  body.append('file', new Blob(['x'.repeat(100_000)]), 'file.txt');
  await fetch(`${baseUrl}/admin/uploads/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body,
  });
}

/** Users, webhooks with long headers, deliveries with long events, uploads and a finished job. */
async function fill(target) {
  await addServices(target, 6_000);
  const headers = JSON.stringify(
    Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`X-Header-${n}`, 'v'.repeat(900)])),
  );
  for (let n = 0; n < 150; n += 1) {
    await post(target, 'services/webhooks/create', {
      name: `webhook ${n}`,
      hookUrl: `http://127.0.0.1:9/${n}`,
      changeTypes: 'Large',
      headers,
    });
    await post(target, 'security/users/create', {
      username: `user${n}`,
      password: 'a long password',
      role: 'member',
    });
    if (n < 20) await upload(target);
  }
  const payload = JSON.stringify({ text: 'x'.repeat(60_000) });
  for (let n = 0; n < 20; n += 1)
    await post(target, 'services/webhooks/publish', { changeType: 'Large', payload });
  await post(target, 'system/upgrades/upgrade', {});
  await pause(3_000);
}

/** The addresses of all resources, with the ids of the first items. */
async function findPaths({ baseUrl, token }) {
  const get = async (path) => {
    const answer = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${token}` } });
    return answer.headers.get('content-type')?.startsWith('application/json') ? answer.json() : {};
  };
  const { paths } = await get('/admin/openapi.json');
  const idOf = async (path, list) => {
    const [first] = Object.values(await get(path)).find(Array.isArray) ?? [];
    return first?.id ?? first?.[list] ?? 'none';
  };
  const ids = {
    webhook: await idOf('/admin/services/webhooks'),
    delivery: await idOf('/admin/services/webhooks/deliveries'),
    job: await idOf('/admin/system/jobs'),
    user: 'admin',
    username: 'admin',
    upload: await idOf('/admin/uploads'),
    folder: 'Maps',
    serviceName: 'Service0',
    type: 'MapServer',
  };
  return Object.entries(paths)
    .filter(([, methods]) => methods.get)
    .map(([path]) => path.replace(/\{(\w+)\}/g, (_whole, name) => ids[name] ?? 'none'));
}

export const readerAttacks = {
  'catalog of 28 MB as JSON, 40 clients that do not read': async (target) => {
    await addServices(target, 7_000);
    return stallFor(target, 40, requestText('/admin/services', target.token));
  },
  'every resource in every format with much data, 8 clients each that do not read': async (target) => {
    await fill(target);
    const paths = await findPaths(target);
    const all = [];
    for (const path of paths)
      for (const format of ['json', 'pjson', 'html', 'csv'])
        all.push(
          ...(await stall(target.baseUrl, 8, requestText(`${path}?f=${format}&num=1000`, target.token))),
        );
    await pause(target.seconds * 1000);
    for (const { socket } of all) socket.destroy();
    return { paths: paths.length, connections: all.length };
  },
  'audit trail as CSV, 60 clients that do not read': async (target) => {
    for (let n = 0; n < 4_000; n += 1)
      await post(target, 'services/webhooks/settings', { numberOfFailures: 1 + (n % 9) });
    return stallFor(target, 60, requestText('/admin/system/audit?f=csv', target.token));
  },
  'pipelined GET /metrics, 40 × 1,900, not read': pipelined('/metrics'),
  'pipelined sign-in page, 40 × 1,900, not read': pipelined('/admin?f=html'),
  'pipelined openapi.json, 40 × 1,900, not read': pipelined('/admin/openapi.json'),
  'pipelined GET /health, 40 × 1,900, not read': pipelined('/health'),
  'pipelined small bodies, 200 × 1,000, not read': (target) => {
    const body = `x=${'y'.repeat(1_000)}`;
    const head = `POST /tokens/revokeToken HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n`;
    return stallFor(target, 200, (head + body).repeat(1_000));
  },
};
