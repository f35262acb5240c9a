// The settings of webhook deliveries: attempts, timeouts, and when failures deactivate a webhook.
import type { Cell } from '../store/state.ts';

export type WebhookSettings = {
  readonly notificationAttempts: number;
  readonly notificationTimeOutInSeconds: number;
  readonly notificationElapsedTimeInSeconds: number;
  readonly daysInPast: number;
  readonly numberOfFailures: number;
};

export const settingRanges: Readonly<Record<keyof WebhookSettings, { from: number; to: number }>> = {
  notificationAttempts: { from: 1, to: 5 },
  notificationTimeOutInSeconds: { from: 1, to: 60 },
  notificationElapsedTimeInSeconds: { from: 0, to: 86_400 },
  daysInPast: { from: 1, to: 365 },
  numberOfFailures: { from: 1, to: 10_000 },
};

export const webhookSettings: Cell<WebhookSettings> = {
  name: 'webhookSettings',
  initial: {
    notificationAttempts: 3,
    notificationTimeOutInSeconds: 10,
    notificationElapsedTimeInSeconds: 5,
    daysInPast: 5,
    numberOfFailures: 5,
  },
  auditFields: (settings) => settings,
};
