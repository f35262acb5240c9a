// Attacks by a publisher: events, event ids and changes of the catalog as fast as the server takes them. Each attack runs for a bounded
// time and samples the resident memory of the server. Only a server on a loopback address is attacked.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { isIP } from 'node:net';
import { clearInterval, setInterval } from 'node:timers';
import { URL, URLSearchParams } from 'node:url';
import { Agent, request } from 'undici';

const connections = 8;
const sampleEveryMs = 250;

/**
 * Publishes the largest payloads while a receiver is silent. The webhook of this receiver must exist: `silentReceiver` starts one, and
 * `webhookFor` creates the webhook.
 */
export function publishLargeEvents(options) {
  const payload = JSON.stringify({ text: 'x'.repeat(254 * 1024) });
  return attack('publish large events', options, () => ({
    path: '/admin/services/webhooks/publish',
    fields: { changeType: 'Attacked', payload },
  }));
}

/** Publishes events with ids that the server must remember for a day. */
export function publishEventIds(options) {
  const run = Date.now();
  return attack('publish event ids', options, (n) => ({
    path: '/admin/services/webhooks/publish',
    // The other field makes the body large: the server must not keep the body together with the id.
    fields: { changeType: 'Nobody', eventId: `attack-${run}-${n}`, other: 'x'.repeat(50_000) },
  }));
}

/** Creates services with the longest texts, and lists them anonymously now and then. */
export function createServices(options) {
  const run = Date.now();
  const description = '&'.repeat(4000);
  return attack('create services', options, (n) =>
    n % 200 === 199
      ? { path: '/services', soap: 'GetServiceDescriptions' }
      : {
          path: '/admin/services/createService',
          fields: { serviceName: `Attack${run}-${n}`, type: 'MapServer', description },
        },
  );
}

/** Edits one service: every edit is an event of the server itself. */
export async function editService(options) {
  const serviceName = `Edited${Date.now()}`;
  await post(new Agent(), options, {
    path: '/admin/services/createService',
    fields: { serviceName, type: 'MapServer' },
  });
  return attack('edit a service', options, (n) => ({
    path: `/admin/services/${serviceName}.MapServer/edit`,
    fields: { description: `edit ${n}` },
  }));
}

export const attacks = [publishLargeEvents, publishEventIds, createServices, editService];

/** A receiver that accepts requests and never answers. */
export function silentReceiver() {
  return new Promise((resolve) => {
    const server = createServer((message) => void message.resume());
    server.listen(0, '127.0.0.1', () => {
      const close = () => {
        server.closeAllConnections();
        server.close();
      };
      resolve({ url: `http://127.0.0.1:${server.address().port}/`, close });
    });
  });
}

/** `token` is that of an administrator. The server needs WEBHOOK_ALLOW_CIDRS=127.0.0.0/8. */
export async function webhookFor(hookUrl, options) {
  const fields = { name: `attack ${Date.now()}`, hookUrl, changeTypes: '*' };
  const status = await post(new Agent(), options, { path: '/admin/services/webhooks/create', fields });
  if (status !== 200) throw new Error(`The webhook was not created: ${status}.`);
}

/**
 * Runs requests on a few connections until the time is over, then calls `report` with what happened.
 * `pid`: the process whose resident memory is sampled; absent: no samples.
 */
async function attack(name, options, requestOf) {
  const { baseUrl, seconds, report, pid } = options;
  requireLoopback(baseUrl);
  const agent = new Agent({ connections, pipelining: 1 });
  const statuses = {};
  const memory = { before: residentMegabytes(pid), peak: 0 };
  const sampling = setInterval(() => {
    memory.peak = Math.max(memory.peak, residentMegabytes(pid));
  }, sampleEveryMs);
  const end = Date.now() + seconds * 1000;
  let sent = 0;
  async function work() {
    while (Date.now() < end) {
      let status;
      try {
        status = await post(agent, options, requestOf((sent += 1)));
      } catch (error) {
        status = error.code ?? error.message;
      }
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, work));
  } finally {
    clearInterval(sampling);
    await agent.close();
  }
  memory.after = residentMegabytes(pid);
  memory.peak = Math.max(memory.peak, memory.after);
  const result = { name, seconds, requests: sent, statuses, memory };
  report?.(result);
  return result;
}

async function post(dispatcher, { baseUrl, token }, { path, fields, soap }) {
  const headers = soap
    ? { 'content-type': 'text/xml; charset=utf-8' }
    : { 'content-type': 'application/x-www-form-urlencoded', authorization: `Bearer ${token}` };
  const body = soap ? envelope(soap) : new URLSearchParams(fields).toString();
  const { statusCode, body: answer } = await request(baseUrl + path, {
    dispatcher,
    method: 'POST',
    headers,
    body,
  });
  await answer.dump({ limit: Infinity });
  return statusCode;
}

function envelope(operation) {
  const namespace = 'http://www.example.com/schemas/Product/10.0';
  return (
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>' +
    `<${operation} xmlns="${namespace}"/></s:Body></s:Envelope>`
  );
}

function requireLoopback(baseUrl) {
  const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '');
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (!isLoopback) throw new Error('Only a server on a loopback address may be attacked.');
}

/** Linux only; NaN elsewhere, or after the process has ended. */
function residentMegabytes(pid) {
  if (pid === undefined) return NaN;
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return NaN;
  }
}
