// Checks docs/operate/monitoring.md against a running server: its metrics, its log lines and its messages exist.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { startProcess } from '../kit/process.ts';
import { checkout } from './page.ts';

const page = readFileSync(join(checkout, 'docs/operate/monitoring.md'), 'utf8');

describe('docs/operate/monitoring.md', () => {
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

  it('names metrics that /metrics has', () => {
    const names = new Set(page.match(/\bsteward_(?:http|webhook|nodejs|process)_\w*[a-z]\b/g));
    expect(names.size).toBeGreaterThan(5);
    expect([...names].filter((name) => !metrics.includes(`# TYPE ${name} `))).toEqual([]);
  });

  it('says that a SOAP fault counts with status 500', () => {
    expect(soapMetric).toContain('status="500"');
  });

  it('shows a log line with the fields of a refused request', () => {
    const [, shown = '{}'] = /^(\{"level":30.*\})$/m.exec(page) ?? [];
    const refused = log.find(({ status }) => status === 401) ?? {};
    expect(Object.keys(refused)).toEqual(Object.keys(JSON.parse(shown) as object));
  });

  it('quotes messages that the source has', () => {
    const source = readdirSync(join(checkout, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(checkout, 'src', name), 'utf8'))
      .join('\n');
    const rows = [...page.matchAll(/^\| \d0 +\| (.*?) \|/gm)].map(([, cell = '']) => cell);
    const quoted = rows.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text));
    expect(quoted.length).toBeGreaterThan(8);
    expect(quoted.filter((text) => !source.includes(text))).toEqual([]);
  });
});
