// Events: their format, the rules for published ones, and the events of the server itself.
import { type ServiceChange, type ServiceId, pathOfService } from '../catalog/catalog.ts';
import type { Job } from '../upgrades/job-table.ts';

export type EventDraft = {
  readonly type: string;
  /** `Folder/Name.Type`. */
  readonly service: string | null;
  /** A JSON object as text. Deliveries contain it unchanged. */
  readonly data: string;
};

export type WebhookEvent = EventDraft & { readonly id: string; readonly timestamp: number };

// Without spread syntax, for the same reason as `addDelivery`.
export function eventOf({ type, service, data }: EventDraft, id: string, timestamp: number): WebhookEvent {
  return { id, type, timestamp, service, data };
}

/** The size of the payload as UTF-8. Every pending delivery counts it. */
export function bytesOfPayload({ data }: EventDraft): number {
  return Buffer.byteLength(data);
}

export const changeTypeRule = {
  pattern: /^[A-Za-z][A-Za-z0-9]{0,63}$/,
  allowed: 'a letter and up to 63 letters or digits',
};

export const eventIdRule = {
  pattern: /^[A-Za-z0-9_-]{1,64}$/,
  allowed: '1 to 64 letters, digits, _ or -',
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
  try {
    const parsed = JSON.parse(text) as unknown[];
    return parsed.every((entry) => typeof entry === 'string') ? parsed : undefined;
  } catch {
    return undefined;
  }
}

export const changeTypesRule = `a JSON array or comma list of 1 to ${maxChangeTypes} change types, each ${changeTypeRule.allowed}, or * for all`;

export function serviceEvent(
  change: ServiceChange,
  { folderName, serviceName, type }: ServiceId,
): EventDraft {
  const data = { folderName, serviceName, type };
  return { type: `Service${change}`, service: pathOfService(data), data: JSON.stringify(data) };
}

const typeOfJob: Readonly<Record<Job['state'], string>> = {
  in_progress: 'UpgradeStarted',
  success: 'UpgradeSucceeded',
  failed: 'UpgradeFailed',
  cancelled: 'UpgradeCancelled',
};

export function jobEvent({ id, operation, from, to, state, reason }: Job): EventDraft {
  const data = { jobId: id, operation, from, to, ...(reason !== null && { reason }) };
  return { type: typeOfJob[state], service: null, data: JSON.stringify(data) };
}

export function deactivatedEvent({
  webhook,
  window,
}: {
  webhook: { id: string; name: string };
  window: { count: number; start: number };
}): EventDraft {
  const data = {
    webhookId: webhook.id,
    webhookName: webhook.name,
    failures: window.count,
    windowStart: window.start,
  };
  return { type: 'WebhookDeactivated', service: null, data: JSON.stringify(data) };
}

export const pingEvent: EventDraft = { type: 'Ping', service: null, data: '{}' };
