// Composes the request of a delivery, and shows what an attempt has sent or the next one will.
import type { Delivery, SentRequest } from '../queue/delivery.ts';
import { type Webhook, contentTypes, signingKeys } from '../webhook.ts';
import { isSameHeader, maskHeaders } from './headers.ts';
import type { OutgoingRequest } from './http-client.ts';
import { signBody, signBodyAlone } from './signature.ts';

export type RequestOptions = {
  readonly userAgent: string;
  /** The header with the signature of the body alone. */
  readonly legacyHeader: string | undefined;
};

type Composed = OutgoingRequest & { readonly signatureField?: string | undefined };

export function composeRequest(
  delivery: Delivery,
  webhook: Webhook,
  at: number,
  { userAgent, legacyHeader }: RequestOptions,
  signedAt = at,
): Composed {
  const { id } = delivery.event;
  const json = jsonOf(delivery, webhook, legacyHeader !== undefined);
  const signatureField =
    legacyHeader !== undefined && isPlainForm(webhook)
      ? `${legacyHeader}=${encodeURIComponent(signBodyAlone(json, webhook.signatureKey))}`
      : undefined;
  const body = bodyOf(json, webhook, signatureField);
  const timestampSeconds = Math.floor(signedAt / 1000);
  // The header may have become reserved after the webhook got it.
  const custom = webhook.headers.filter(({ name }) => !isSameHeader(name, legacyHeader));
  return {
    url: webhook.hookUrl,
    headers: {
      ...Object.fromEntries(custom.map(({ name, value }) => [name, value])),
      'content-type': webhook.contentType,
      'user-agent': userAgent,
      'webhook-id': id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signBody({ id, timestampSeconds, body, keys: signingKeys(webhook, at) }),
      ...(legacyHeader !== undefined && { [legacyHeader]: signBodyAlone(body, webhook.signatureKey) }),
    },
    body,
    signatureField,
  };
}

type BodyOptions = Pick<Webhook, 'contentType' | 'bodyFormat'>;

/** Receivers of this kind read the payload without decoding it. */
function isPlainForm({ contentType, bodyFormat }: BodyOptions): boolean {
  return bodyFormat === 'payload' && contentType === 'application/x-www-form-urlencoded';
}

/** `data` is JSON text already, so it is inserted without parsing. */
function jsonOf(
  { event }: Pick<Delivery, 'event'>,
  webhook: BodyOptions & Pick<Webhook, 'id' | 'name'>,
  hasLegacySignature: boolean,
): string {
  const { id, type, timestamp, service, data } = event;
  const envelope = { id, type, timestamp, service, webhookId: webhook.id, webhookName: webhook.name };
  const json =
    webhook.bodyFormat === 'payload' ? data : `${JSON.stringify(envelope).slice(0, -1)},"data":${data}}`;
  // In JSON, both characters stand only in texts.
  const unsplit = hasLegacySignature ? json.replace(ambiguousDot, '\\u002e') : json;
  return isPlainForm(webhook) ? unsplit.replaceAll('&', '\\u0026') : unsplit;
}

/**
 * Standard Webhooks signs id, timestamp and body joined by dots. Without this, the legacy signature of a body would be
 * one of Standard Webhooks for an id, a timestamp and a rest that the body has.
 */
const ambiguousDot = /\.(?=\d+\.)/g;

function bodyOf(json: string, webhook: BodyOptions, signatureField: string | undefined): string {
  if (webhook.contentType === 'application/json') return json;
  if (!isPlainForm(webhook)) return new URLSearchParams({ payload: json }).toString();
  return [`payload=${json}`, signatureField].filter(Boolean).join('&');
}

/** What is stored of a request: no values of custom headers, and nothing that follows from the event and the time. */
export function toSentRequest(
  {
    url,
    headers: { 'webhook-id': _id, 'webhook-timestamp': _timestamp, ...headers },
    signatureField,
  }: Composed,
  webhook: Webhook,
): SentRequest {
  const custom = webhook.headers.filter(({ name }) => Object.hasOwn(headers, name));
  const { name: webhookName, bodyFormat } = webhook;
  return {
    url,
    headers: { ...headers, ...maskHeaders(custom) },
    webhookName,
    ...(bodyFormat !== 'envelope' && { bodyFormat }),
    ...(signatureField !== undefined && { signatureField }),
  };
}

/** What the last attempt sent, or the next one will. */
export function requestToJson(
  delivery: Delivery,
  webhook: Webhook,
  at: number,
  options: RequestOptions,
): OutgoingRequest {
  const last = delivery.attempts.at(-1);
  const when = last?.when ?? at;
  const {
    url,
    headers,
    webhookName,
    bodyFormat = 'envelope',
    signatureField,
  } = last?.request ?? toSentRequest(composeRequest(delivery, webhook, when, options), webhook);
  const identity = { 'webhook-id': delivery.event.id, 'webhook-timestamp': String(Math.floor(when / 1000)) };
  const contentType = contentTypes.find((type) => type === headers['content-type']) ?? webhook.contentType;
  const sent = { id: webhook.id, name: webhookName, contentType, bodyFormat };
  const json = jsonOf(delivery, sent, Object.hasOwn(headers, options.legacyHeader ?? ''));
  return { url, headers: { ...headers, ...identity }, body: bodyOf(json, sent, signatureField) };
}
