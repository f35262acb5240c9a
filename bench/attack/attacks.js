// The attacks of bench/attack.js, one for each mechanism that keeps the memory of the server and its answers to others
// within bounds. An attack gets the server, at which an administrator is signed in, and the seconds that it takes if it
// has no end of its own. `env` are the variables of its server.
import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fetch } from 'undici';
import { startReceivers } from '../receivers.js';
import { createWebhooks, credentials } from '../server.js';
import { finish, headOf, openAll, write } from './sockets.js';

const mebibyte = 1024 ** 2;
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
const bearer = ({ token }) => ({ Authorization: `Bearer ${token}` });

const listing =
  '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>' +
  '<GetServiceDescriptions xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>';

/** An identity provider that accepts connections and does not answer. */
const silentProvider = createServer(() => undefined).listen(0, '127.0.0.1');
await once(silentProvider, 'listening');
silentProvider.unref();

/** Services with long descriptions, which are expensive to compare. */
const folder = mkdtempSync(join(tmpdir(), 'steward-attacks-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
const fullCatalog = join(folder, 'catalog.json');
const services = Array.from({ length: 7_000 }, (_, n) => ({
  serviceName: `Service ${n}`,
  type: 'MapServer',
  description: 'A\u0308 b '.repeat(400),
}));
writeFileSync(fullCatalog, JSON.stringify({ services }));

export const attacks = [
  {
    name: 'SOAP in 1-byte chunks, 200 × 10,000',
    async attack({ address }) {
      const headers = { 'Content-Type': 'text/xml', 'Transfer-Encoding': 'chunked' };
      const text = headOf('POST', '/services', headers) + '1\r\na\r\n'.repeat(10_000);
      return count(await finish(await openAll(address, 200, (connection) => write(connection, text)), 5));
    },
  },
  {
    name: 'forms of 1 MiB that never end, 800',
    attack: (server) => sendUnfinishedForms(server, 800),
  },
  {
    name: 'forms of 1 MiB that never end, of an administrator, 800',
    attack: (server) => sendUnfinishedForms(server, 800, bearer(server)),
  },
  {
    name: 'guessed keys, 20,000',
    async attack({ address }) {
      const statuses = [];
      for (let n = 0; n < 20_000; n += 100) {
        const guesses = Array.from({ length: 100 }, () => {
          const authorization = `Bearer stw_${randomBytes(32).toString('base64url')}`;
          return fetch(`${address}/admin/security/users`, { headers: { authorization } });
        });
        for (const { status } of await Promise.all(guesses)) statuses.push(status);
      }
      return count(statuses);
    },
  },
  {
    name: 'sign-ins at an identity provider that does not answer, 1,000',
    env: { OIDC_ISSUER: `http://127.0.0.1:${silentProvider.address().port}`, OIDC_CLIENT_ID: 'attacks' },
    async attack({ address }) {
      const starts = Array.from({ length: 1_000 }, () =>
        fetch(`${address}/tokens/oidc/start`, { redirect: 'manual' }),
      );
      return count((await Promise.all(starts)).map(({ status }) => status));
    },
  },
  {
    name: 'largest events for a receiver that does not answer',
    async attack(server, seconds) {
      const receivers = await startReceivers({ blackHoles: 1 });
      await createWebhooks(server, receivers.blackHoles);
      const event = { changeType: 'Attacked', payload: JSON.stringify({ text: 'x'.repeat(254 * 1024) }) };
      const answers = await repeat(seconds, () =>
        server.ask('POST', '/admin/services/webhooks/publish', event),
      );
      receivers.stop();
      return answers;
    },
  },
  {
    name: 'services with the longest texts, and listings',
    attack: (server, seconds) =>
      repeat(seconds, (n) =>
        n % 200 === 0
          ? server.askSoap('/services', listing)
          : server.ask('POST', '/admin/services/createService', {
              serviceName: `Attack${n}`,
              type: 'MapServer',
              description: '&'.repeat(4000),
            }),
      ),
  },
  {
    name: 'pipelined searches of a member in 7,000 services, 30 × 16',
    env: { CATALOG_FILE: fullCatalog },
    async attack(server) {
      const member = { username: 'member', password: credentials.password };
      await server.admin('security/users/add', { ...member, role: 'member' });
      const headers = bearer(await server.require('POST', '/tokens/generateToken', member));
      const pages = ['/admin?q=zzz', '/admin/services?q=a+b', '/admin/services?sort=name&order=desc'];
      const heads = Array.from({ length: 16 }, (_, n) => headOf('GET', `${pages[n % 3]}&f=html`, headers));
      return count(await finish(await openAll(server.address, 30, (one) => write(one, heads.join(''))), 60));
    },
  },
  {
    name: 'audit trail as CSV, 60 clients that do not read',
    async attack(server, seconds) {
      for (let n = 0; n < 4_000; n += 1)
        await server.admin('services/webhooks/settings', { numberOfFailures: 1 + (n % 9) });
      return stall(server, seconds, 60, headOf('GET', '/admin/system/audit?f=csv', bearer(server)));
    },
  },
  {
    name: 'pipelined GET /metrics, 40 × 1,900, not read',
    attack: (server, seconds) => stall(server, seconds, 40, headOf('GET', '/metrics').repeat(1_900)),
  },
  {
    name: 'pipelined small bodies, 200 × 1,000, not read',
    attack(server, seconds) {
      const body = `x=${'y'.repeat(1_000)}`;
      const head = headOf('POST', '/tokens/revokeToken', { ...form, 'Content-Length': body.length });
      return stall(server, seconds, 200, (head + body).repeat(1_000));
    },
  },
];

/** Sends all of a form but its last bytes. */
async function sendUnfinishedForms({ address }, connections, headers) {
  const head = headOf('POST', '/tokens/generateToken', { ...form, 'Content-Length': mebibyte, ...headers });
  const body = Buffer.alloc(mebibyte - 10, 'a');
  const all = await openAll(address, connections, async (connection) => {
    await write(connection, head);
    await write(connection, body);
  });
  return count(await finish(all, 5));
}

/** Sends the text on connections that read nothing, and keeps them open. */
async function stall({ address }, seconds, connections, text) {
  const all = await openAll(address, connections, async (connection) => {
    connection.socket.pause();
    await write(connection, text);
  });
  await pause(seconds * 1000);
  const closed = all.filter(({ socket }) => socket.destroyed).length;
  for (const { socket } of all) socket.destroy();
  return { connections, closed };
}

/** Asks with 1, 2, … in eight loops until the time is over. */
async function repeat(seconds, ask) {
  const end = performance.now() + seconds * 1000;
  const statuses = [];
  let sent = 0;
  async function work() {
    while (performance.now() < end) statuses.push((await ask((sent += 1))).status);
  }
  await Promise.all(Array.from({ length: 8 }, work));
  return count(statuses);
}

function count(statuses) {
  const counts = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
