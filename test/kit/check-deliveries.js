// Checks every delivery of the servers in this process against the schema that `services/webhooks/eventTypes` has
// for its type. The fake HTTP client calls `checkDelivery`. Where a server sends real requests,
// `checkSentDeliveries` does; check-process.js calls it, so this must be JavaScript.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { URLSearchParams } from 'node:url';
import * as z from 'zod';

/** What was wrong, for a check at the end of a test file. @type {string[]} */
export const wrongDeliveries = [];

/** The schemas of `data` by type, the same for all servers. Empty until the first server has routes. @type {Map<string, z.ZodType>} */
const schemas = new Map();

const body = z.strictObject({
  id: z.string().min(1),
  type: z.string().regex(/^[A-Za-z][A-Za-z0-9]{0,63}$/),
  timestamp: z.int(),
  service: z.string().nullable(),
  webhookId: z.string().min(1),
  webhookName: z.string().min(1),
  data: z.record(z.string(), z.unknown()),
});

subscribe('fastify.initialization', (message) => {
  const { fastify } = /** @type {{ fastify: import('fastify').FastifyInstance }} */ (message);
  fastify.addHook('onRoute', ({ url, config }) => {
    const rest = /** @type {any} */ (config)?.rest;
    if (schemas.size > 0 || !url.endsWith('/services/webhooks/eventTypes') || !rest) return;
    for (const { type, schema } of rest.entry.resource.read(
      (/** @type {unknown} */ values) => ({ values }),
      {},
    ).eventTypes)
      schemas.set(type, z.fromJSONSchema({ ...schema, additionalProperties: false }));
  });
});

/**
 * Throws if the delivery is wrong.
 * @param {Readonly<Record<string, string | undefined>>} headers
 * @param {string} sent
 */
export function checkDelivery(headers, sent) {
  const isForm = headers['content-type'] === 'application/x-www-form-urlencoded';
  // A form with the payload alone is not encoded.
  const isPlain = /^payload=[[{]/.test(sent);
  const json = isForm && !isPlain ? (new URLSearchParams(sent).get('payload') ?? '') : sent;
  if (isPlain || !isEnvelope(JSON.parse(json))) return;
  const { data: event, error } = body.safeParse(JSON.parse(json));
  const schema = schemas.get(event?.type ?? '');
  const problem =
    error?.message ??
    (event?.id === headers['webhook-id'] ? undefined : 'webhook-id is not the id of the event') ??
    schema?.safeParse(event?.data).error?.message;
  if (problem === undefined) return;
  const text = `The delivery does not have the declared schema. ${problem}\n${json.slice(0, 2000)}`;
  wrongDeliveries.push(text);
  throw new Error(text);
}

/**
 * Any member of the envelope: a payload alone has none of them in the tests.
 * @param {unknown} json
 */
function isEnvelope(json) {
  return typeof json === 'object' && json !== null && Object.keys(body.shape).some((name) => name in json);
}

/** Checks every delivery that this process sends from now on, until the returned function is called. */
export function checkSentDeliveries() {
  /** @param {unknown} message */
  const check = (message) => {
    const { request } = /** @type {{ request: { headers: string[], body: unknown } }} */ (message);
    /** @type {Record<string, string>} */
    const headers = {};
    for (let index = 0; index < request.headers.length; index += 2)
      headers[request.headers[index] ?? ''] = request.headers[index + 1] ?? '';
    // Other requests, such as those to registries, have no such header.
    if (headers['webhook-id'] !== undefined) checkDelivery(headers, String(request.body));
  };
  subscribe('undici:request:create', check);
  return () => void unsubscribe('undici:request:create', check);
}
