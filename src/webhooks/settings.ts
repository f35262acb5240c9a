// The settings of webhook deliveries: attempts, timeouts, and when failures deactivate a webhook.
import * as z from 'zod';
import type { Cell } from '../store/state.ts';

const setting = (from: number, to: number, label: string, description: string) =>
  z.int().min(from).max(to).meta({ label, description });

/** Fields, answers and the stored value follow from it. */
export const settingsSchema = z.strictObject({
  notificationAttempts: setting(1, 5, 'Attempts per delivery', 'The attempts before a delivery has failed.'),
  notificationTimeOutInSeconds: setting(
    1,
    60,
    'Timeout of an attempt, in seconds',
    'The seconds a receiver has to answer.',
  ),
  notificationElapsedTimeInSeconds: setting(
    0,
    86_400,
    'Wait between two attempts, in seconds',
    'The seconds between two attempts.',
  ),
  daysInPast: setting(1, 365, 'Failure window, in days', 'The days over which failures are counted.'),
  numberOfFailures: setting(
    1,
    10_000,
    'Failures that deactivate a webhook',
    'The failed deliveries in those days that deactivate a webhook.',
  ),
});

export type WebhookSettings = Readonly<z.infer<typeof settingsSchema>>;

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
