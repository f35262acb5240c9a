// The metrics of requests by route and status, of webhook deliveries and of upgrade jobs. No label names a user, a
// receiver or an id.
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Build } from '../lib/build.ts';

/** The help of each gauge, by its name after `steward_`. */
const gauges = {
  ready: '1 while /ready answers 200, otherwise 0.',
  webhook_deliveries_pending: 'Deliveries that have not ended.',
  webhook_oldest_pending_seconds: 'Age of the oldest delivery that has not ended.',
  webhook_deactivated: 'Webhooks that were deactivated for their failures.',
  upgrade_running: '1 while an upgrade or a rollback runs, otherwise 0.',
  upgrade_steps_done: 'Steps of the running job that are done. 0 while no job runs.',
  upgrade_steps: 'Steps in the plan of the running job. 0 while no job runs.',
  upgrade_step_age_seconds: 'Time since the running job recorded its last message. 0 while no job runs.',
  upgrade_last_success_timestamp_seconds:
    'When the last successful job ended, in seconds since 1970. 0 if none has.',
  upgrade_scheduled_timestamp_seconds:
    'When the scheduled job is to start, in seconds since 1970. 0 if none is scheduled.',
  upgrade_window_open: '1 while a maintenance window is open, or none is configured. Otherwise 0.',
};

/** The value of each gauge, and the totals of two counters that the store has. */
type StoredValues = Readonly<Record<keyof typeof gauges, number>> & {
  readonly webhook_evictions_total: number;
  readonly upgrade_jobs_total: readonly {
    readonly operation: string;
    readonly state: string;
    readonly count: number;
  }[];
};

type RenderedMetrics = { readonly contentType: string; readonly text: string };

export type MetricsOptions = {
  /** Whether the metrics of the process and of Node are shown too. */
  readonly measuresProcess?: boolean | undefined;
  /** How old the text of the metrics may be. */
  readonly metricsMaxAgeMs?: number;
};

let processRegistry: Registry | undefined;

/** All apps of the process share it: for each registry, the library would observe the process again. */
function measureProcess(): Registry {
  if (processRegistry) return processRegistry;
  processRegistry = new Registry();
  collectDefaultMetrics({ register: processRegistry, prefix: 'steward_' });
  return processRegistry;
}

export class Metrics {
  readonly registry = new Registry();
  readonly requestDuration = new Histogram({
    name: 'steward_http_request_duration_seconds',
    help: 'Time from a request to the end of its answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers: [this.registry],
  });
  readonly #requests = new Counter({
    name: 'steward_http_requests_total',
    help: 'Requests that have ended. With the status closed, the client left before the answer.',
    labelNames: ['method', 'route', 'status'],
    registers: [this.registry],
    collect: () => this.#countRequests(),
  });
  readonly badHttp = new Counter({
    name: 'steward_http_parse_errors_total',
    help: 'Connections whose bytes were no HTTP, or that sent their request too slowly, by the code of the error.',
    labelNames: ['code'],
    registers: [this.registry],
  });
  readonly failures = new Counter({
    name: 'steward_unexpected_failures_total',
    help: 'Requests and background tasks that have failed by a defect.',
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
  readonly #endedRuns = new Counter({
    name: 'steward_upgrade_jobs_total',
    help: 'Runs of jobs that have ended, by the state in which they ended. A job that is resumed has several runs.',
    labelNames: ['operation', 'state'],
    registers: [this.registry],
  });
  readonly #gauges = Object.entries(gauges).map(([name, help]) => ({
    name: name as keyof typeof gauges,
    gauge: new Gauge({ name: `steward_${name}`, help, registers: [this.registry] }),
  }));
  readonly #read: () => StoredValues;
  readonly #maxAgeMs: number;
  readonly #shown: Registry;
  #rendered: { readonly at: number; readonly metrics: Promise<RenderedMetrics> } | undefined;

  constructor(read: () => StoredValues, { version, commit = '', ...options }: Build & MetricsOptions) {
    new Gauge({
      name: 'steward_build_info',
      help: 'Always 1. The labels say which build runs.',
      labelNames: ['version', 'commit'],
      registers: [this.registry],
    }).set({ version, commit }, 1);
    this.#read = read;
    this.#maxAgeMs = options.metricsMaxAgeMs ?? 1000;
    this.#shown = options.measuresProcess ? Registry.merge([this.registry, measureProcess()]) : this.registry;
  }

  observeAttempt(outcome: 'succeeded' | 'failed', seconds: number, failsDelivery: boolean): void {
    this.#attemptDuration.observe({ outcome }, seconds);
    if (failsDelivery) this.#failedDeliveries.inc();
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
    const values = this.#read();
    for (const { name, gauge } of this.#gauges) gauge.set(values[name]);
    // The store has the totals, so the counters start from zero each time.
    this.#evictions.reset();
    this.#evictions.inc(values.webhook_evictions_total);
    this.#endedRuns.reset();
    for (const { operation, state, count } of values.upgrade_jobs_total)
      this.#endedRuns.inc({ operation, state }, count);
    return { contentType: this.#shown.contentType, text: await this.#shown.metrics() };
  }

  /** The histogram counts requests too, so each request is observed only once. */
  async #countRequests(): Promise<void> {
    const { values } = await this.requestDuration.get();
    this.#requests.reset();
    for (const { metricName, labels, value } of values) {
      if (metricName?.endsWith('_count')) this.#requests.inc(labels, value);
    }
  }
}
