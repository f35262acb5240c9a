// Renders docs/reference/metrics.md from the registry of a running server that has answered requests and attempted
// deliveries.
import { type Registry, collectDefaultMetrics } from 'prom-client';
import { ask } from '../../hard/wire.ts';
import { type Server, startServer } from '../../kit/server.ts';
import { code, formatPage, table } from './markdown.ts';

const intro = `
Every metric that \`GET /metrics\` shows, in the text format of Prometheus: for operators. The address needs no token; METRICS_PORT moves it to a port of its own. No label contains a user, a receiver or an id.

The counters and histograms count what this process has done since it started. The three gauges \`steward_webhook_deliveries_pending\`, \`steward_webhook_oldest_pending_seconds\` and \`steward_webhook_deactivated\`, and all metrics whose names begin with \`steward_upgrade_\`, come from the store, so that all processes with the same database show the same value: take their maximum, not their sum.

## Metrics of Steward
`;

const labelsIntro = `
## Labels
`;

const nodeIntro = `
## Metrics of the process and of Node

The library \`prom-client\` adds these. Some exist only on Linux.
`;

type Metric = {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly buckets: readonly number[];
};

async function metricsOf(registry: Registry): Promise<Metric[]> {
  const described = await registry.getMetricsAsJSON();
  return described.map(({ name, help, type }) => {
    const metric = registry.getSingleMetric(name) as unknown as {
      labelNames?: string[];
      upperBounds?: number[];
    };
    // The type of a metric is text in this format, whatever the declaration of the library says.
    return {
      name,
      help,
      type: String(type),
      labels: metric.labelNames ?? [],
      buckets: metric.upperBounds ?? [],
    };
  });
}

/** The values of a label that appear after requests and deliveries. */
async function valuesOf(registry: Registry, label: string): Promise<string[]> {
  const metrics = await registry.getMetricsAsJSON();
  const values = metrics.flatMap(({ values }) =>
    values.flatMap(({ labels }) => (labels as Record<string, string | number | undefined>)[label] ?? []),
  );
  return [...new Set(values.map(String))].sort();
}

/** One request of each kind, and one delivery with each outcome. */
async function exercise(server: Server): Promise<void> {
  const token = server.token('administrator');
  await server.get('/health');
  await server.get('/nowhere');
  await ask(Number(new URL(await server.listen()).port), 'NONSENSE\r\n\r\n');
  server.httpClient.receiver = ({ url }) => (url.endsWith('/works') ? 200 : 500);
  for (const path of ['works', 'fails']) {
    const created = await server.post('/admin/services/webhooks/create', {
      token,
      name: path,
      hookUrl: `https://receiver.example.com/${path}`,
      changeTypes: '*',
    });
    const { webhook } = created.json<{ webhook: { id: string } }>();
    await server.post(`/admin/services/webhooks/${webhook.id}/ping`, { token });
  }
  await server.runtime.advance(1000);
  await server.get('/metrics');
}

const meanings: Readonly<Record<string, string>> = {
  method: 'The HTTP method.',
  route:
    'The path template as in the OpenAPI document, such as `/admin/services/webhooks/{webhook}`; `unknown` for a path without a route.',
  status: 'The HTTP status of the answer.',
  code: 'What is wrong with the bytes, as Node names it.',
  outcome: 'How the attempt ended.',
  operation: 'The kind of the job.',
  state: 'The state in which the run ended.',
};

async function labelsPart(registry: Registry, metrics: readonly Metric[]): Promise<string> {
  const names = [...new Set(metrics.flatMap(({ labels }) => labels))];
  const rows = await Promise.all(
    names.map(async (name) => {
      const values = (await valuesOf(registry, name)).map(code).join(', ');
      const isOpen = !['outcome', 'operation', 'state'].includes(name);
      return [code(name), meanings[name] ?? '', isOpen ? `for example ${values}` : values];
    }),
  );
  return labelsIntro + '\n' + table(['Label', 'Meaning', 'Values'], rows);
}

export async function metricsPage(): Promise<string> {
  const server = await startServer();
  await exercise(server);
  const { registry } = await server.app.loadMetrics();
  const own = await metricsOf(registry);
  const labels = await labelsPart(registry, own);
  // As src/http/metrics.ts does.
  collectDefaultMetrics({ register: registry, prefix: 'steward_' });
  const node = (await metricsOf(registry)).filter(({ name }) => !own.some((metric) => metric.name === name));
  await server.close();
  registry.clear();
  return formatPage(
    'Metrics',
    'src/http/metrics.ts',
    intro,
    table(
      ['Metric', 'Type', 'Labels', 'Meaning'],
      own.map(({ name, type, labels: names, help, buckets }) => [
        code(name),
        type,
        names.map(code).join(', '),
        buckets.length === 0 ? help : `${help} Buckets: ${buckets.join(', ')}.`,
      ]),
    ),
    labels,
    nodeIntro,
    table(
      ['Metric', 'Type', 'Labels', 'Meaning'],
      node.map(({ name, type, labels: names, help }) => [
        code(name),
        type,
        names.map(code).join(', '),
        `${help.replace(/\.$/, '')}.`,
      ]),
    ),
  );
}
