// Checks docs/operate/monitoring.md and deploy/monitoring against a running server: their metrics and log
// lines exist. The alert rules and the queries of the dashboard are checked with promtool.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { readYaml } from '../../kit/manifests.ts';
import { startProcess } from '../../kit/process.ts';
import { checkout } from './page.ts';

const page = readFileSync(join(checkout, 'docs/operate/monitoring.md'), 'utf8');
const folder = join(checkout, 'deploy/monitoring');
const textOf = (name: string) => readFileSync(join(folder, name), 'utf8');

let metrics: string;
let soapMetric: string | undefined;
let log: Record<string, unknown>[];

beforeAll(async () => {
  const { child, output, listening, exited } = startProcess({ ADMIN_PASSWORD: 'correct horse' });
  const address = await listening;
  const fields = new URLSearchParams({ username: 'admin', password: 'wrong password' });
  await fetch(`${address}/tokens/generateToken`, { method: 'POST', body: fields });
  await fetch(`${address}/services`, {
    method: 'POST',
    body: '<no/>',
    headers: { 'content-type': 'text/xml' },
  });
  metrics = await (await fetch(`${address}/metrics`)).text();
  soapMetric = metrics.split('\n').find((line) => /requests_total.*route="\/services"/.test(line));
  child.kill('SIGTERM');
  await exited;
  log = output.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
});

describe('docs/operate/monitoring.md', () => {
  it('shows a log line with the fields of a refused request', () => {
    const [shown = '{}'] = /^\{"level":.*\}$/m.exec(page) ?? [];
    const fields = JSON.parse(shown) as Record<string, unknown>;
    const refused = log.find(({ status }) => status === 401) ?? {};
    expect(Object.keys(refused)).toEqual(Object.keys(fields));
    expect(refused.level).toBe(fields.level);
  });
});

type Rule = { alert: string; expr: string };
const { groups } = readYaml(textOf('alerts.yaml')) as { groups: { name: string; rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

type Panel = {
  id: number;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
};
const dashboard = JSON.parse(textOf('dashboard.json')) as { panels: Panel[] };
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** The metrics in these queries that the server does not have. */
function unknownMetrics(expressions: readonly string[]): string[] {
  const names = expressions.flatMap((expr) => expr.match(/\bsteward_\w+/g) ?? []);
  const known = (name: string) =>
    [name, name.replace(/_(?:bucket|count|sum)$/, '')].some((one) => metrics.includes(`# TYPE ${one} `));
  return names.filter((name) => !known(name));
}

const promtoolWith = (input: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8', input });
  return { status, output: stdout + stderr };
};
const promtool = (...args: string[]) => promtoolWith('', ...args);
const hasPromtool = promtool('--version').status === 0;

it.skipIf(!hasPromtool)('the scrape configuration of the page is accepted by promtool', () => {
  const [, configuration = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  expect(configuration).toContain('job_name: steward\n');
  const temporary = mkdtempSync(join(tmpdir(), 'steward-scrape-'));
  onTestFinished(() => rmSync(temporary, { recursive: true }));
  cpSync(join(folder, 'alerts.yaml'), join(temporary, 'alerts.yaml'));
  writeFileSync(join(temporary, 'prometheus.yml'), configuration);
  expect(promtool('check', 'config', join(temporary, 'prometheus.yml'))).toMatchObject({ status: 0 });
});

it.skipIf(!hasPromtool)('the names of the metrics follow the conventions, except for those of Node', () => {
  const ownMetrics = metrics.replaceAll(/^(# \w+ )?steward_(nodejs|process)_.*\n/gm, '');
  const { output } = promtoolWith(ownMetrics, 'check', 'metrics');
  expect(output).toBe('');
});

describe('deploy/monitoring/alerts.yaml', () => {
  it('uses metrics that /metrics has', () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(unknownMetrics(rules.map(({ expr }) => expr))).toEqual([]);
  });

  it('does not count faults of SOAP 1.1, which have status 500, as errors', () => {
    expect(soapMetric).toContain('status="500"');
    expect(metrics).toContain('\nsteward_unexpected_failures_total 0\n');
  });

  it('has a test of every alert that fires, and one of every alert that does not', () => {
    type Check = { alertname: string; exp_alerts?: object[] };
    const { tests } = readYaml(textOf('alerts.test.yaml')) as { tests: { alert_rule_test: Check[] }[] };
    const checks = tests.flatMap((test) => test.alert_rule_test);
    const names = (fires: boolean) =>
      new Set(
        checks
          .filter((check) => (check.exp_alerts ?? []).length > 0 === fires)
          .map((check) => check.alertname),
      );
    const all = new Set(rules.map(({ alert }) => alert));
    expect(names(true)).toEqual(all);
    expect(names(false)).toEqual(all);
  });

  it.skipIf(!hasPromtool)('passes its tests with promtool', () => {
    expect(promtool('check', 'rules', 'alerts.yaml')).toMatchObject({ status: 0 });
    expect(promtool('test', 'rules', 'alerts.test.yaml')).toMatchObject({ status: 0 });
  });
});

describe('deploy/monitoring/dashboard.json', () => {
  it('uses metrics that /metrics has, and shows what the alerts watch and all metrics of upgrades', () => {
    expect(unknownMetrics(queries)).toEqual([]);
    const watched = rules.flatMap(({ expr }) => expr.match(/\b(?:steward_\w+|up)\b(?=[{[) ])/g) ?? []);
    const isShown = (name: string) => queries.some((expr) => new RegExp(`\\b${name}\\b`).test(expr));
    expect(watched.filter((name) => !isShown(name))).toEqual([]);
    const ofUpgrades = [...metrics.matchAll(/^# TYPE (steward_upgrade_\w+) /gm)].map(([, name = '']) => name);
    expect(ofUpgrades).toHaveLength(8);
    expect(ofUpgrades.filter((name) => !queries.some((expr) => expr.includes(name)))).toEqual([]);
  });

  it('has panels with ids of their own that do not overlap', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const overlaps = panels.flatMap(({ title, gridPos: a }, index) =>
      panels
        .slice(0, index)
        .filter(({ gridPos: b }) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
        .map((other) => `${other.title} and ${title}`),
    );
    expect(overlaps).toEqual([]);
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  });

  it.skipIf(!hasPromtool)('has queries that promtool accepts', () => {
    const temporary = mkdtempSync(join(tmpdir(), 'steward-queries-'));
    onTestFinished(() => rmSync(temporary, { recursive: true }));
    const variables = { $job: 'steward', $__range: '1h', $__rate_interval: '5m' };
    const recorded = queries.map((query, index) => ({
      record: `query_${index}`,
      expr: Object.entries(variables).reduce((expr, [name, value]) => expr.replaceAll(name, value), query),
    }));
    const path = join(temporary, 'rules.json');
    writeFileSync(path, JSON.stringify({ groups: [{ name: 'dashboard', rules: recorded }] }));
    expect(promtool('check', 'rules', path)).toMatchObject({ status: 0 });
  });
});
