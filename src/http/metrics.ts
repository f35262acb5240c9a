// The metrics of requests by route and status, and of webhook deliveries. No label names a user, a receiver or an id.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export type ObservedRequest = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
};

export type DeliveryStats = {
  readonly pending: number;
  readonly oldestPendingSeconds: number;
  readonly deactivated: number;
};

export class Metrics {
  readonly registry = new Registry();
  readonly #requestDuration = new Histogram({
    name: 'steward_http_request_duration_seconds',
    help: 'Time from a request to the end of its answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers: [this.registry],
  });
  readonly #requests = new Counter({
    name: 'steward_http_requests_total',
    help: 'Requests answered.',
    labelNames: ['method', 'route', 'status'],
    registers: [this.registry],
  });
  readonly #attemptDuration = new Histogram({
    name: 'steward_webhook_attempt_duration_seconds',
    help: 'Duration of an attempt to deliver an event, by its outcome.',
    labelNames: ['outcome'],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [this.registry],
  });
  readonly #failedDeliveries = new Counter({
    name: 'steward_webhook_failures_total',
    help: 'Deliveries whose attempts all failed.',
    registers: [this.registry],
  });
  readonly #pending = this.#gauge('deliveries_pending', 'Deliveries that have not ended.');
  readonly #oldestPending = this.#gauge(
    'oldest_pending_seconds',
    'Age of the oldest delivery that has not ended.',
  );
  readonly #deactivated = this.#gauge('deactivated', 'Webhooks that were deactivated for their failures.');
  readonly #readDeliveryStats: () => Promise<DeliveryStats>;

  constructor(readDeliveryStats: () => Promise<DeliveryStats>) {
    this.#readDeliveryStats = readDeliveryStats;
  }

  observeRequest({ method, route, status, seconds }: ObservedRequest): void {
    this.#requestDuration.observe({ method, route, status }, seconds);
  }

  observeAttempt({ succeeded, seconds }: { succeeded: boolean; seconds: number }): void {
    this.#attemptDuration.observe({ outcome: succeeded ? 'succeeded' : 'failed' }, seconds);
  }

  countFailedDelivery(): void {
    this.#failedDeliveries.inc();
  }

  async render(): Promise<{ contentType: string; text: string }> {
    const { pending, oldestPendingSeconds, deactivated } = await this.#readDeliveryStats();
    this.#pending.set(pending);
    this.#oldestPending.set(oldestPendingSeconds);
    this.#deactivated.set(deactivated);
    await this.#countRequests();
    return { contentType: this.registry.contentType, text: await this.registry.metrics() };
  }

  /** The histogram counts requests too, so each request is observed only once. */
  async #countRequests(): Promise<void> {
    const { values } = await this.#requestDuration.get();
    this.#requests.reset();
    for (const { metricName, labels, value } of values) {
      if (metricName?.endsWith('_count')) this.#requests.inc(labels, value);
    }
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name: `steward_webhook_${name}`, help, registers: [this.registry] });
  }
}
