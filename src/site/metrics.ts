// What /metrics shows: requests by route and status, and the process itself. No label names a user or an id.
import { Counter, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

export type Metrics = {
  countRequest: (request: { method: string; route: string; status: number; seconds: number }) => void;
  contentType: string;
  render: () => Promise<string>;
};

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'steward_' });
  const labelNames = ['method', 'route', 'status'] as const;
  const requests = new Counter({
    name: 'steward_http_requests_total',
    help: 'Requests answered.',
    labelNames,
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'steward_http_request_duration_seconds',
    help: 'Time from a request to the end of its answer.',
    labelNames,
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers: [registry],
  });
  return {
    countRequest({ method, route, status, seconds }) {
      const labels = { method, route, status: String(status) };
      requests.inc(labels);
      durations.observe(labels, seconds);
    },
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}
