// Measures the audit trail with 1,000,000 entries: the time of a page, and what the removal of expired entries does to
// writes. The option --scale F multiplies their number.
import { parseArgs } from 'node:util';
import { median, print, printTable } from './kit.js';
import { startServer } from './server.js';
import { startDatabases, withClient } from './storage/databases.js';
import { countExpiredAudit, fillAudit, settle } from './storage/fill.js';
import { measureRemoval } from './storage/removal.js';

const { values: given } = parseArgs({ options: { scale: { type: 'string', default: '1' } } });
const entries = Math.round(1_000_000 * Number(given.scale));
const dayMs = 86_400_000;
const reads = 5;
const maxPageMs = 500;
/** The database reads all entries before it. Filters lead to old entries faster. */
const distantPage = { 'of all entries, after 90,000': 'start=90000' };

async function measurePages(storeUrl, { from, to }) {
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
  const server = await startServer({ storeUrl });
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
    print(`page ${name}: ${ms.toFixed(0)} ms, ${total} entries match`);
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

const databases = await startDatabases();
const storeUrl = await databases.create();
await (await startServer({ storeUrl })).stop();
print(`storing ${entries} entries`);
const at = Date.now();
const filled = { from: at - 300 * dayMs, to: at - 2 * dayMs };
await withClient(storeUrl, async (client) => {
  await fillAudit(client, entries, filled);
  await settle(client);
});
const pages = await measurePages(storeUrl, filled);
const removal = await measureRemoval({
  options: { storeUrl, env: { AUDIT_DAYS: '1' } },
  what: 'the removal of entries',
  writersByKind: { settings: 2 },
  count: (client) => countExpiredAudit(client, filled.to + 1),
  maxMs: 90_000,
  report: print,
});
await databases.stop();
printTable([...pages, ...removal]);
