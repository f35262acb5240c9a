// Attacks by a publisher: events, event ids and changes of the catalog as fast as the server takes them, for a
// bounded time.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { URLSearchParams } from 'node:url';
import { Agent, request } from 'undici';

const connections = 8;

async function post(dispatcher, { baseUrl, token }, { path, fields, soap }) {
  const headers = soap
    ? { 'content-type': 'text/xml; charset=utf-8' }
    : { 'content-type': 'application/x-www-form-urlencoded', authorization: `Bearer ${token}` };
  const body = soap ?? new URLSearchParams(fields).toString();
  const response = await request(baseUrl + path, { dispatcher, method: 'POST', headers, body });
  await response.body.dump({ limit: Infinity });
  return response.statusCode;
}

/** Repeats requests on a few connections until the time is over, and counts the statuses. */
async function repeat(target, requestOf) {
  const agent = new Agent({ connections, pipelining: 1 });
  const statuses = {};
  const end = Date.now() + target.seconds * 1000;
  let sent = 0;
  const work = async () => {
    while (Date.now() < end) {
      const status = await post(agent, target, requestOf((sent += 1)));
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  await agent.close();
  return statuses;
}

/** Runs with a webhook whose receiver accepts requests and never answers. */
async function withSilentReceiver(target, attack) {
  const receiver = createServer((message) => void message.resume()).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const hookUrl = `http://127.0.0.1:${receiver.address().port}/`;
  await post(undefined, target, {
    path: '/admin/services/webhooks/create',
    fields: { name: 'silent', hookUrl, changeTypes: '*' },
  });
  try {
    return await attack();
  } finally {
    receiver.closeAllConnections();
    receiver.close();
  }
}

const listing =
  '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>' +
  '<GetServiceDescriptions xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>';

export const publisherAttacks = {
  'largest events for a silent receiver': (target) =>
    withSilentReceiver(target, () => {
      const payload = JSON.stringify({ text: 'x'.repeat(254 * 1024) });
      return repeat(target, () => ({
        path: '/admin/services/webhooks/publish',
        fields: { changeType: 'Attacked', payload },
      }));
    }),

  // The other field makes the body large: the server must not keep the body together with the id.
  'events with ids': (target) =>
    repeat(target, (n) => ({
      path: '/admin/services/webhooks/publish',
      fields: { changeType: 'Attacked', eventId: `attack-${n}`, other: 'x'.repeat(50_000) },
    })),

  'services with the longest texts, and listings': (target) =>
    repeat(target, (n) =>
      n % 200 === 0
        ? { path: '/services', soap: listing }
        : {
            path: '/admin/services/createService',
            fields: { serviceName: `Attack${n}`, type: 'MapServer', description: '&'.repeat(4000) },
          },
    ),

  'edits of a service, each an event for a silent receiver': (target) =>
    withSilentReceiver(target, async () => {
      const fields = { serviceName: 'Edited', type: 'MapServer' };
      await post(undefined, target, { path: '/admin/services/createService', fields });
      return repeat(target, (n) => ({
        path: '/admin/services/Edited.MapServer/edit',
        fields: { description: `edit ${n}` },
      }));
    }),
};
