// What /metrics shows: requests by route and status, webhook deliveries, and the process itself. No label names a user or an id.
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { createRequestFigures } from './request-figures.ts';
import type { WebhookFigures } from '../webhooks/figures.ts';

export type Metrics = {
  countRequest: (request: { method: string; route: string; status: number; seconds: number }) => void;
  countAttempt: (attempt: { succeeded: boolean; seconds: number }) => void;
  countFailedDelivery: () => void;
  /** Figures that are asked for when somebody looks. */
  watchWebhooks: (look: () => Promise<WebhookFigures>) => void;
  contentType: string;
  render: () => Promise<string>;
};

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'steward_' });
  const requests = createRequestFigures();
  const attempts = new Histogram({
    name: 'steward_webhook_attempt_duration_seconds',
    help: 'Time of an attempt to deliver an event, by how it ended.',
    labelNames: ['outcome'] as const,
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  const failures = new Counter({
    name: 'steward_webhook_failures_total',
    help: 'Deliveries whose attempts were all spent.',
    registers: [registry],
  });
  let lookAtWebhooks = () => Promise.resolve();
  return {
    countAttempt: ({ succeeded, seconds }) =>
      attempts.observe({ outcome: succeeded ? 'succeeded' : 'failed' }, seconds),
    countFailedDelivery: () => failures.inc(),
    watchWebhooks(look) {
      const gauge = (name: string, help: string) =>
        new Gauge({ name: `steward_webhook_${name}`, help, registers: [registry] });
      const pending = gauge('deliveries_pending', 'Deliveries that have not ended.');
      const oldest = gauge('oldest_pending_seconds', 'Age of the oldest delivery that has not ended.');
      const deactivated = gauge('deactivated', 'Webhooks that were deactivated for their failures.');
      lookAtWebhooks = async () => {
        const figures = await look();
        pending.set(figures.pending);
        oldest.set(figures.oldestPendingSeconds);
        deactivated.set(figures.deactivated);
      };
    },
    countRequest: (request) => requests.count(request),
    contentType: registry.contentType,
    render: async () => {
      await lookAtWebhooks();
      return requests.render() + (await registry.metrics());
    },
  };
}
