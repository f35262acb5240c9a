// Events: their format, and the rules for published ones. own-events.ts has the events of the server itself.
import { parseJson } from '../lib/json.ts';

export type EventDraft = {
  readonly type: string;
  /** `Folder/Name.Type`. */
  readonly service: string | null;
  /** A JSON object or array as text. Deliveries contain it unchanged. */
  readonly data: string;
  /** The webhook that the event is about. It does not receive the event. */
  readonly about?: string;
};

export type WebhookEvent = Omit<EventDraft, 'about'> & { readonly id: string; readonly timestamp: number };

// Without spread syntax, for the same reason as deliveries.
export function eventOf({ type, service, data }: EventDraft, id: string, timestamp: number): WebhookEvent {
  return { id, type, timestamp, service, data };
}

/** The size of the payload as UTF-8. Every pending delivery counts it. */
export function bytesOfPayload({ data }: Pick<EventDraft, 'data'>): number {
  return Buffer.byteLength(data);
}

export const changeTypeRule = {
  pattern: /^[A-Za-z][A-Za-z0-9]{0,63}$/,
  allowed: 'a letter and up to 63 letters or digits',
};

export const maxPayloadBytes = 256 * 1024;

const maxChangeTypes = 100;

export function readChangeTypes(text: string): readonly string[] | undefined {
  const entries = text.trim().startsWith('[') ? readArray(text) : text.split(',');
  const types = new Set(entries?.map((entry) => entry.trim()).filter((entry) => entry !== ''));
  const isValid = [...types].every((type) => type === '*' || changeTypeRule.pattern.test(type));
  if (!isValid || types.size === 0 || types.size > maxChangeTypes) return undefined;
  return types.has('*') ? ['*'] : [...types];
}

function readArray(text: string): string[] | undefined {
  const parsed = parseJson(text);
  const isList = Array.isArray(parsed) && parsed.every((entry) => typeof entry === 'string');
  return isList ? parsed : undefined;
}

export const changeTypesRule = `a JSON array or comma list of 1 to ${maxChangeTypes} change types, each ${changeTypeRule.allowed}, or * for all`;
