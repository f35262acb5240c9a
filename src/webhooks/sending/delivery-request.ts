// Composes the request of a delivery, and shows what an attempt has sent or the next one will.
import { type Delivery, type SentRequest, bodyOf } from '../queue/delivery.ts';
import { type Webhook, contentTypes, signingKeys } from '../webhook.ts';
import { isSameHeader, maskHeaders } from './headers.ts';
import type { OutgoingRequest } from './http-client.ts';
import { signBody, signBodyAlone } from './signature.ts';

export type RequestOptions = {
  readonly userAgent: string;
  /** The header with the signature of the body alone. */
  readonly legacyHeader: string | undefined;
};

export function composeRequest(
  delivery: Delivery,
  webhook: Webhook,
  at: number,
  { userAgent, legacyHeader }: RequestOptions,
): OutgoingRequest {
  const { id } = delivery.event;
  const body = bodyOf(delivery, webhook);
  const timestampSeconds = Math.floor(at / 1000);
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
  };
}

/** What is stored of a request. It contains no values of custom headers. */
export function toSentRequest({ url, headers }: OutgoingRequest, webhook: Webhook): SentRequest {
  const custom = webhook.headers.filter(({ name }) => Object.hasOwn(headers, name));
  return { url, headers: { ...headers, ...maskHeaders(custom) }, webhookName: webhook.name };
}

/** What the last attempt sent, or the next one will. */
export function requestToJson(
  delivery: Delivery,
  webhook: Webhook,
  at: number,
  options: RequestOptions,
): OutgoingRequest {
  const last = delivery.attempts.at(-1);
  const { url, headers, webhookName } =
    last?.request ?? toSentRequest(composeRequest(delivery, webhook, last?.when ?? at, options), webhook);
  const contentType = contentTypes.find((type) => type === headers['content-type']) ?? webhook.contentType;
  return { url, headers, body: bodyOf(delivery, { id: webhook.id, name: webhookName, contentType }) };
}
