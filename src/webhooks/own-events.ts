// The events of the server itself: of services, jobs and webhooks.
import { type ServiceChange, type ServiceId, pathOfService } from '../catalog/catalog.ts';
import type { Job } from '../upgrades/jobs/job-table.ts';
import { type EventData, eventTypes, pingType } from './event-types.ts';
import type { EventDraft } from './event.ts';
import type { FailureWindow } from './sending/failure-window.ts';
import type { Webhook } from './webhook.ts';

export function serviceEvent(
  change: ServiceChange,
  { folderName, serviceName, type }: ServiceId,
): EventDraft {
  const data: EventData['service'] = { folderName, serviceName, type };
  return { type: `Service${change}`, service: pathOfService(data), data: JSON.stringify(data) };
}

const typeOfJob: Readonly<Record<Job['state'], string>> = {
  scheduled: 'UpgradeScheduled',
  in_progress: 'UpgradeStarted',
  success: 'UpgradeSucceeded',
  failed: 'UpgradeFailed',
  cancelled: 'UpgradeCancelled',
};

export function jobEvent(job: Job): EventDraft {
  const { id, operation, from, to, state, reason, startAt, hasMissedStart } = job;
  const isAboutStart = state === 'scheduled' || hasMissedStart;
  const data: EventData['job'] = {
    jobId: id,
    operation,
    from,
    to,
    ...(isAboutStart && startAt !== null && { startAt }),
    ...(reason !== null && { reason }),
  };
  const type = hasMissedStart ? 'UpgradeMissed' : typeOfJob[state];
  return { type, service: null, data: JSON.stringify(data) };
}

export function adoptionEvent({ from, to }: EventData['adoption']): EventDraft {
  const data: EventData['adoption'] = { from, to };
  return { type: 'VersionAdopted', service: null, data: JSON.stringify(data) };
}

/** What the end of a delivery means for its webhook. */
export type WebhookNotice = {
  readonly kind: 'Failing' | 'Recovered' | 'Deactivated';
  readonly webhook: Webhook;
  readonly window: FailureWindow;
  /** The failures that deactivate the webhook. */
  readonly numberOfFailures: number;
};

export function noticeData({
  kind,
  webhook,
  window,
  numberOfFailures,
}: WebhookNotice): EventData['failing'] | EventData['deactivated'] {
  return {
    webhookId: webhook.id,
    webhookName: webhook.name,
    failures: window.count,
    ...(kind !== 'Deactivated' && { numberOfFailures }),
    windowStart: window.start,
  };
}

export function webhookEvent(notice: WebhookNotice): EventDraft {
  return {
    type: `Webhook${notice.kind}`,
    service: null,
    data: JSON.stringify(noticeData(notice)),
    about: notice.webhook.id,
  };
}

/** The example of an event type. */
export function exampleEvent(name = pingType): EventDraft {
  const found = eventTypes.find(({ type }) => type === name);
  if (!found) throw new Error(`There is no event type ${name}.`);
  const { service, data } = found.example;
  return { type: name, service, data: JSON.stringify(data) };
}
