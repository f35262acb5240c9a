// Measures the audit trail with many entries: the time of a page, and what the removal of expired entries does to
// writes.
import { setTimeout as pause } from 'node:timers/promises';
import { median } from '../kit.js';
import { startServer } from '../server.js';
import { withClient } from '../storage/databases.js';
import { countAudit, fillAudit, settle } from '../storage/fill.js';
import { Writers } from '../storage/writers.js';

const dayMs = 86_400_000;
const reads = 5;
const maxPageMs = 500;
/** The database reads all entries before it. Filters lead to old entries faster. */
const distantPage = { 'of all entries, after 90,000': 'start=90000' };
const writers = 2;
const lookEveryMs = 1_000;
const leastMs = 10_000;
const maxMs = 90_000;
const maxSlowerMs = 50;

export async function measureEntries({ databases, entries, report }) {
  const databaseUrl = await databases.create();
  const at = Date.now();
  const filled = { from: at - 300 * dayMs, to: at - 2 * dayMs };
  await (await startServer({ storeUrl: databaseUrl })).stop();
  report(`storing ${entries} entries`);
  await withClient(databaseUrl, async (client) => {
    await fillAudit(client, entries, filled);
    await settle(client);
  });
  const rows = await measurePages(databaseUrl, filled, report);
  rows.push(...(await measureRemoval(databaseUrl, filled.to + 1, report)));
  await databases.drop(databaseUrl);
  return rows;
}

async function measurePages(databaseUrl, { from, to }, report) {
  const middle = Math.round((from + to) / 2);
  const pages = {
    'of all entries': '',
    'of a user': 'user=user7',
    'of a user without entries': 'user=nobody',
    'of an operation': 'operation=services/7/edit',
    'of an operation without entries': 'operation=services/never',
    'of a failure': 'outcome=failed',
    'of a day': `from=${middle}&to=${middle + dayMs}`,
    'of half of the time': `from=${middle}`,
    'with a word in every entry': 'q=parcels',
    'with words in no entry': 'q=never+found',
    'with words in no entry of a user': 'q=never+found&user=user7',
    'of a user, an operation and a day': `user=user7&operation=edit&from=${middle}&to=${middle + dayMs}`,
  };
  const server = await startServer({ storeUrl: databaseUrl });
  await server.signIn();
  const rows = [];
  for (const [name, filter] of Object.entries({ ...pages, ...distantPage })) {
    const times = [];
    let total = 0;
    for (let read = 0; read < reads; read += 1) {
      const started = performance.now();
      ({ total } = await server.require('GET', `/admin/system/audit?f=json&${filter}`));
      times.push(performance.now() - started);
    }
    const ms = median(times);
    report(`page ${name}: ${ms.toFixed(0)} ms, ${total} entries match`);
    rows.push({
      figure: `page of the audit trail ${name} (${total} entries match)`,
      required: name in distantPage ? undefined : `at most ${maxPageMs} ms`,
      measured: `${ms.toFixed(0)} ms`,
      isMet: ms <= maxPageMs,
    });
  }
  await server.stop();
  return rows;
}

/**
 * A process removes expired entries soon after its start: it starts once with expired entries, and again when they
 * are gone.
 */
async function measureRemoval(databaseUrl, expired, report) {
  const count = () => withClient(databaseUrl, (client) => countAudit(client, expired));
  async function write(isOver) {
    const server = await startServer({ storeUrl: databaseUrl, env: { AUDIT_DAYS: '1' } });
    await server.signIn();
    const load = new Writers().start('settings', server, writers);
    const from = performance.now();
    do await pause(lookEveryMs);
    while (!(await isOver(performance.now() - from)));
    const to = performance.now();
    await load.stop();
    await server.kill();
    const writes = load.between(from, to);
    return { p50: writes.duration(0.5), p99: writes.duration(0.99), max: writes.duration(1), ms: to - from };
  }
  const during = await write(async (ms) => ms >= maxMs || (await count()) === 0);
  const left = await count();
  const seconds = (during.ms / 1000).toFixed(0);
  report(`removed within ${seconds} s; still there: ${left}`);
  const without = await write((ms) => ms >= leastMs);
  const show = (name) => `${during[name].toFixed(0)} ms with and ${without[name].toFixed(0)} ms without`;
  const difference = (name) => during[name] - without[name];
  return [
    {
      figure: `p99 of writes beside the removal of entries: ${show('p99')}`,
      required: `at most ${maxSlowerMs} ms`,
      measured: `${difference('p99').toFixed(0)} ms`,
      isMet: difference('p99') <= maxSlowerMs,
    },
    { figure: `p50: ${show('p50')}`, measured: `${difference('p50').toFixed(0)} ms` },
    { figure: `longest write: ${show('max')}`, measured: `${difference('max').toFixed(0)} ms` },
    {
      figure: `expired entries left after ${seconds} s`,
      required: '0',
      measured: String(left),
      isMet: left === 0,
    },
  ];
}
