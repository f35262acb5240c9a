// A webhook receiver that accepts only genuine deliveries. It uses nothing but the standard library of Node.
//
//   SIGNATURE_KEYS=whsec_… PORT=9000 node receiver.js
//
// SIGNATURE_KEYS is the key that Steward returned when you created the webhook. Separate several keys with spaces.
import { Buffer } from 'node:buffer';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { URLSearchParams } from 'node:url';

const { SIGNATURE_KEYS = '', HOST = '127.0.0.1', PORT = '9000' } = process.env;
const secrets = SIGNATURE_KEYS.split(' ')
  .filter((key) => key.startsWith('whsec_'))
  .map((key) => Buffer.from(key.slice('whsec_'.length), 'base64'));
if (secrets.length === 0)
  throw new Error('SIGNATURE_KEYS must hold at least one key that begins with whsec_');

/** Refuses recorded deliveries that an attacker sends again later, and allows for clocks that differ. */
const toleranceSeconds = 300;
/** A payload has at most 256 KiB; a form encodes one byte as up to three. */
const maxBodyBytes = 1024 * 1024;
const rememberedIds = 10_000;

/** Checks the bytes as they arrived: JSON that was parsed and written again has other bytes and another signature. */
function isGenuine(headers, body) {
  const id = headers['webhook-id'] ?? '';
  const timestamp = headers['webhook-timestamp'] ?? '';
  const signatures = (headers['webhook-signature'] ?? '').split(' ').map((text) => Buffer.from(text));
  if (id === '' || !/^[0-9]{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > toleranceSeconds) return false;
  return secrets.some((secret) => {
    const hmac = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body);
    const expected = Buffer.from(`v1,${hmac.digest('base64')}`);
    // Steward sends one signature for each key that is valid during a key rotation: any of them may match.
    return signatures.some((given) => given.length === expected.length && timingSafeEqual(given, expected));
  });
}

function readEvent(headers, body) {
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded');
  return JSON.parse(isForm ? new URLSearchParams(body.toString()).get('payload') : body.toString());
}

/** Put your own code here. Answer fast: do work that takes long after the answer. */
function handle(event) {
  process.stdout.write(`accepted ${event.type} ${event.id} ${JSON.stringify(event.data)}\n`);
}

const handledIds = new Set();

/** Steward may deliver an event more than once, always with the same id. */
function handleOnce(event) {
  if (handledIds.has(event.id)) return;
  handle(event);
  handledIds.add(event.id);
  if (handledIds.size > rememberedIds) handledIds.delete(handledIds.values().next().value);
}

async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > maxBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns the status of the answer. Steward repeats a delivery unless the status is 2xx. */
async function receive(request) {
  if (request.method !== 'POST') return 405;
  const body = await readBody(request);
  if (body === undefined) return 413;
  if (!isGenuine(request.headers, body)) {
    process.stdout.write('refused\n');
    return 401;
  }
  try {
    handleOnce(readEvent(request.headers, body));
    return 204;
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    return 500;
  }
}

const server = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status, status === 413 ? { connection: 'close' } : {}).end(),
    () => response.destroy(), // The sender closed the connection before the body was complete.
  );
});
server.listen(Number(PORT), HOST, () => {
  process.stdout.write(`listening on http://${HOST}:${server.address().port}\n`);
});
process.once('SIGTERM', () => server.close());
