// Receivers of this family on loopback, each of which parses a delivery in its own way.
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, it, onTestFinished } from 'vitest';
import { startSteward } from '../../kit/steward.ts';

const field = 'X-Acme-Hook-Signature';
const key = 'the key of the receiver';
const env = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LEGACY_SIGNATURE_HEADER: field };
const form = 'application/x-www-form-urlencoded';

const entry = {
  changesUrl: 'https%3A%2F%2Fgis.example.com%2Fx%3Fa%3D1%26b%3D.7.',
  serviceName: 'Roads',
  name: 'a & b',
};
const changes = [{ ...entry, changeType: 'FeaturesCreated', layerId: 0 }];
const chat = {
  info: { portalURL: 'https://gis.example.com/' },
  events: [{ operation: 'add', username: 'ann', id: '7', properties: {} }],
};

type Request = { readonly body: string; readonly headers: Readonly<Record<string, string | undefined>> };

const hmac = (text: string) => `sha256=${createHmac('sha256', key).update(text).digest('base64')}`;

/** As a receiver that reads no form: it splits the body, and decodes only the second field. */
function readUndecoded({ body }: Request): { payload: unknown; isValid: boolean } {
  const [head = '', rest = ''] = body.split('payload=');
  const [payload = '', signature = ''] = rest.split('&');
  const [name, value = ''] = signature.split(/=(.*)/);
  return {
    payload: JSON.parse(payload) as unknown,
    isValid: head === '' && name === field && decodeURIComponent(value) === hmac(payload),
  };
}

const json = ({ body }: Request) => JSON.parse(body) as unknown;
const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

type Kind = {
  readonly kind: string;
  readonly contentType: string;
  readonly bodyFormat: string;
  readonly payload: object;
  /** Whether the receiver does its work. */
  readonly accepts: (request: Request) => boolean;
};

const kinds: readonly Kind[] = [
  {
    kind: 'checks a header with the HMAC of the raw body, and reads an array',
    contentType: 'application/json',
    bodyFormat: 'payload',
    payload: changes,
    accepts: (request) =>
      decodeURIComponent(request.headers[field.toLowerCase()] ?? '') === hmac(request.body) &&
      (json(request) as typeof changes)[0]?.changesUrl === entry.changesUrl,
  },
  {
    kind: 'reads the JSON between payload= and & without decoding it, and checks the field after it',
    contentType: form,
    bodyFormat: 'payload',
    payload: changes,
    accepts: (request) => {
      const { payload, isValid } = readUndecoded(request);
      return isValid && (payload as typeof changes).every(({ name }) => name === 'a & b');
    },
  },
  {
    kind: 'stores each entry of such a form with its signature',
    contentType: form,
    bodyFormat: 'payload',
    payload: [entry, entry],
    accepts: (request) => (readUndecoded(request).payload as object[]).length === 2,
  },
  {
    kind: 'reads an object with changesUrl',
    contentType: 'application/json',
    bodyFormat: 'payload',
    payload: { changesUrl: entry.changesUrl },
    accepts: (request) =>
      request.headers['content-type'] === 'application/json' &&
      decodeURIComponent((json(request) as typeof entry).changesUrl).startsWith('https://gis.example.com/x?'),
  },
  {
    kind: 'reads any object',
    contentType: 'application/json',
    bodyFormat: 'envelope',
    payload: {},
    accepts: (request) => isObject(json(request)),
  },
  {
    kind: 'reads info and events',
    contentType: 'application/json',
    bodyFormat: 'payload',
    payload: chat,
    accepts: (request) => {
      const { info, events } = json(request) as typeof chat;
      return info.portalURL !== '' && events[0]?.operation === 'add' && events[0].username === 'ann';
    },
  },
];

async function listen(answer: (request: Request) => boolean) {
  const requests: Request[] = [];
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (part: string) => (body += part));
    incoming.on('end', () => {
      const request = { body, headers: incoming.headers as Request['headers'] };
      requests.push(request);
      response.writeHead(answer(request) ? 200 : 400).end();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return { requests, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in` };
}

it.each(['plain', 'family'].flatMap((PROFILE) => kinds.map((kind) => [PROFILE, kind.kind, kind] as const)))(
  'with PROFILE=%s a receiver that %s gets what it reads',
  async (PROFILE, _kind, { contentType, bodyFormat, payload, accepts }) => {
    const steward = await startSteward({ ...env, PROFILE });
    const receiver = await listen(accepts);
    const service = 'Maps/Roads.MapServer';
    const fields = {
      name: 'receiver',
      hookUrl: receiver.address,
      signatureKey: key,
      contentType,
      bodyFormat,
      f: 'json',
    };
    // Without changeTypes, the webhook gets all events of its service.
    const { id } = await steward.act<{ id: string }>(`services/${service}/webhooks/create`, fields);
    await steward.act('services/webhooks/publish', {
      changeType: 'FeaturesCreated',
      service,
      payload: JSON.stringify(payload),
      f: 'json',
    });
    type Deliveries = { deliveries: { id: string; state: string }[] };
    const path = `services/webhooks/${id}/deliveries`;
    const first = async () => (await steward.read<Deliveries>(`${path}?f=json`)).deliveries[0];
    await expect.poll(async () => (await first())?.state).toBe('delivered');
    const [sent = { body: '', headers: {} }] = receiver.requests;
    const { request } = await steward.read<{ request: { body: string } }>(
      `${path}/${(await first())?.id}?f=json`,
    );
    expect(request.body).toBe(sent.body);
    // The headers of Standard Webhooks are always there.
    const verified = new Webhook(key, { format: 'raw' });
    expect(() =>
      verified.verify(sent.body, sent.headers as Record<string, string>, { jsonParse: false }),
    ).not.toThrow();
    // No legacy signature is one of Standard Webhooks for another split of the body.
    expect(sent.body).not.toMatch(/\.\d+\./);
  },
);
