// What /metrics shows: requests by route and status, webhook deliveries, and the process itself. No label names a user or an id.
import type { Registry } from 'prom-client';
import type { WebhookStats } from '../webhooks/stats.ts';
import { addTo, createSpread, renderNumbers, renderSpreads } from './metrics-text.ts';
import { type CountedRequest, createRequestFigures } from './request-figures.ts';

export type Metrics = {
  countRequest: (request: CountedRequest) => void;
  countAttempt: (attempt: { succeeded: boolean; seconds: number }) => void;
  countFailedDelivery: () => void;
  render: () => Promise<{ contentType: string; text: string }>;
};

const bounds = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60];
const attemptDuration = {
  name: 'steward_webhook_attempt_duration_seconds',
  help: 'Time of an attempt to deliver an event, by how it ended.',
};
const failedDeliveries = {
  name: 'steward_webhook_failures_total',
  help: 'Deliveries whose attempts were all spent.',
};

/** `lookAtWebhooks` is asked when somebody looks. */
export function createMetrics(lookAtWebhooks: () => Promise<WebhookStats>): Metrics {
  const requests = createRequestFigures();
  const succeeded = createSpread('outcome="succeeded"', bounds);
  const failed = createSpread('outcome="failed"', bounds);
  let failures = 0;

  function renderWebhooks({ pending, oldestPendingSeconds, deactivated }: WebhookStats): string {
    const gauge = (name: string, help: string, count: number) =>
      renderNumbers('gauge', { name: `steward_webhook_${name}`, help }, [{ labels: '', count }]);
    return [
      renderSpreads(
        attemptDuration,
        [succeeded, failed].filter(({ count }) => count > 0),
      ),
      renderNumbers('counter', failedDeliveries, [{ labels: '', count: failures }]),
      gauge('deliveries_pending', 'Deliveries that have not ended.', pending),
      gauge('oldest_pending_seconds', 'Age of the oldest delivery that has not ended.', oldestPendingSeconds),
      gauge('deactivated', 'Webhooks that were deactivated for their failures.', deactivated),
    ].join('');
  }

  let ofProcess: Promise<Registry> | undefined;

  return {
    countRequest: (request) => requests.count(request),
    countAttempt: (attempt) => addTo(attempt.succeeded ? succeeded : failed, attempt.seconds),
    countFailedDelivery: () => (failures += 1),
    async render() {
      const registry = await (ofProcess ??= watchProcess());
      const own = requests.render() + renderWebhooks(await lookAtWebhooks());
      return { contentType: registry.contentType, text: own + (await registry.metrics()) };
    },
  };
}

/** Loaded when somebody first looks, so that a start does not wait for it. */
async function watchProcess(): Promise<Registry> {
  const { Registry, collectDefaultMetrics } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'steward_' });
  return registry;
}
