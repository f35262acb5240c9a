// The metrics of requests by route and status, of webhook deliveries and of upgrade jobs. No label names a user, a
// receiver or an id.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

type ObservedRequest = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
};

type DeliveryStats = {
  readonly pending: number;
  readonly oldestPendingSeconds: number;
  readonly deactivated: number;
  /** How many deliveries this process has removed that could have been recovered. */
  readonly evicted: number;
};

/** Of the running job; zeros while no job runs. */
type UpgradeStats = {
  readonly running: boolean;
  readonly stepsDone: number;
  readonly stepsTotal: number;
  readonly stepAgeSeconds: number;
  /** How many runs of jobs have ended, since the deployment exists. */
  readonly ended: readonly { readonly operation: string; readonly state: string; readonly count: number }[];
  /** 0 if no job has succeeded yet. */
  readonly lastSuccessSeconds: number;
  /** 0 if no job is scheduled. */
  readonly scheduledSeconds: number;
  readonly isWindowOpen: boolean;
};

type StatsReaders = {
  readonly deliveries: () => Promise<DeliveryStats>;
  readonly upgrades: () => UpgradeStats;
};

type RenderedMetrics = { readonly contentType: string; readonly text: string };

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
  readonly #evictions = new Counter({
    name: 'steward_webhook_evictions_total',
    help: 'Failed, missed and discarded deliveries that were removed before they were redelivered, because a webhook had too many of them.',
    registers: [this.registry],
  });
  readonly #pending = this.#gauge('webhook_deliveries_pending', 'Deliveries that have not ended.');
  readonly #oldestPending = this.#gauge(
    'webhook_oldest_pending_seconds',
    'Age of the oldest delivery that has not ended.',
  );
  readonly #deactivated = this.#gauge(
    'webhook_deactivated',
    'Webhooks that were deactivated for their failures.',
  );
  readonly #running = this.#gauge('upgrade_running', '1 while an upgrade or a rollback runs, otherwise 0.');
  readonly #stepsDone = this.#gauge(
    'upgrade_steps_done',
    'Steps of the running job that are done. 0 while no job runs.',
  );
  readonly #steps = this.#gauge(
    'upgrade_steps',
    'Steps in the plan of the running job. 0 while no job runs.',
  );
  readonly #stepAge = this.#gauge(
    'upgrade_step_age_seconds',
    'Time since the running job recorded its last message. 0 while no job runs.',
  );
  readonly #endedRuns = new Counter({
    name: 'steward_upgrade_jobs_total',
    help: 'Runs of jobs that have ended, by the state in which they ended. A job that is resumed has several runs.',
    labelNames: ['operation', 'state'],
    registers: [this.registry],
  });
  readonly #lastSuccess = this.#gauge(
    'upgrade_last_success_timestamp_seconds',
    'When the last successful job ended, in seconds since 1970. 0 if none has.',
  );
  readonly #scheduled = this.#gauge(
    'upgrade_scheduled_timestamp_seconds',
    'When the scheduled job is to start, in seconds since 1970. 0 if none is scheduled.',
  );
  readonly #windowOpen = this.#gauge(
    'upgrade_window_open',
    '1 while a maintenance window is open, or none is configured. Otherwise 0.',
  );
  readonly #readers: StatsReaders;
  readonly #maxAgeMs: number;
  #rendered: { readonly at: number; readonly metrics: Promise<RenderedMetrics> } | undefined;

  constructor(readers: StatsReaders, maxAgeMs = 1000) {
    this.#readers = readers;
    this.#maxAgeMs = maxAgeMs;
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

  /** Rendering takes milliseconds, so callers of one second share a text. */
  render(): Promise<RenderedMetrics> {
    const at = performance.now();
    if (!this.#rendered || at >= this.#rendered.at + this.#maxAgeMs)
      this.#rendered = { at, metrics: this.#render() };
    const { metrics } = this.#rendered;
    // The next caller tries again.
    metrics.catch(() => (this.#rendered = undefined));
    return metrics;
  }

  async #render(): Promise<RenderedMetrics> {
    const deliveries = await this.#readers.deliveries();
    const upgrades = this.#readers.upgrades();
    this.#pending.set(deliveries.pending);
    this.#oldestPending.set(deliveries.oldestPendingSeconds);
    this.#deactivated.set(deliveries.deactivated);
    // The store has the total, so the counter starts from zero each time.
    this.#evictions.reset();
    this.#evictions.inc(deliveries.evicted);
    this.#setUpgrades(upgrades);
    await this.#countRequests();
    return { contentType: this.registry.contentType, text: await this.registry.metrics() };
  }

  #setUpgrades(stats: UpgradeStats): void {
    this.#running.set(stats.running ? 1 : 0);
    this.#stepsDone.set(stats.stepsDone);
    this.#steps.set(stats.stepsTotal);
    this.#stepAge.set(stats.stepAgeSeconds);
    this.#lastSuccess.set(stats.lastSuccessSeconds);
    this.#scheduled.set(stats.scheduledSeconds);
    this.#windowOpen.set(stats.isWindowOpen ? 1 : 0);
    // The store has the totals, so the counter starts from zero each time.
    this.#endedRuns.reset();
    for (const { operation, state, count } of stats.ended) this.#endedRuns.inc({ operation, state }, count);
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
    return new Gauge({ name: `steward_${name}`, help, registers: [this.registry] });
  }
}
