// Events: what has happened and whom it concerns (spec 6 leaves them open; contract 5).
import { type ServiceChange, type ServiceId, pathOfService } from '../catalog/catalog.ts';
import type { Job } from '../upgrades/job-table.ts';

/** What has happened, before it has an id and a time. */
export type EventDraft = {
  readonly type: string;
  /** `Folder/Name.Type`; null for what concerns no single service. */
  readonly service: string | null;
  /** A JSON object as text: it is sent far more often than it is looked into. */
  readonly data: string;
};

export type WebhookEvent = EventDraft & { readonly id: string; readonly timestamp: number };

/** Written out, because there may be many: see `addDelivery`. */
export function eventOf({ type, service, data }: EventDraft, id: string, timestamp: number): WebhookEvent {
  return { id, type, timestamp, service, data };
}

export const changeTypeRule = {
  pattern: /^[A-Za-z][A-Za-z0-9]{0,63}$/,
  allowed: 'a letter and up to 63 letters or digits',
};

export const eventIdRule = {
  pattern: /^[A-Za-z0-9_-]{1,64}$/,
  allowed: '1 to 64 letters, digits, _ or -',
};

export const mostPayloadBytes = 256 * 1024;

const mostChangeTypes = 100;

/** A JSON array or a comma list of change types, `*` for all; undefined when it is neither. */
export function readChangeTypes(text: string): readonly string[] | undefined {
  const entries = text.trim().startsWith('[') ? readArray(text) : text.split(',');
  const types = new Set(entries?.map((entry) => entry.trim()).filter((entry) => entry !== ''));
  const isGood = [...types].every((type) => type === '*' || changeTypeRule.pattern.test(type));
  if (!isGood || types.size === 0 || types.size > mostChangeTypes) return undefined;
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

export const changeTypesRule = `a JSON array or comma list of 1 to ${mostChangeTypes} change types, each ${changeTypeRule.allowed}, or * for all`;

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

/** For a job that has just been started or has ended. */
export function jobEvent({ id, operation, from, to, state, reason }: Job): EventDraft {
  const data = { jobId: id, operation, from, to, ...(reason !== null && { reason }) };
  return { type: typeOfJob[state], service: null, data: JSON.stringify(data) };
}

/** For a webhook that was deactivated for its failures. */
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

/** What a receiver gets to see that it can be reached. */
export const pingEvent: EventDraft = { type: 'Ping', service: null, data: '{}' };
