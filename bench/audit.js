// Measures the audit trail: `node bench/audit.js [part…]` runs the named parts, or all of them. Options: --rounds N
// repeats the comparison of costs, --scale F multiplies the number of stored entries.
import { parseArgs } from 'node:util';
import { measureCost } from './audit/cost.js';
import { measureEntries } from './audit/entries.js';
import { print, printTable } from './kit.js';
import { startDatabases } from './storage/databases.js';

const parts = { cost: measureCost, entries: measureEntries };

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '4' }, scale: { type: 'string', default: '1' } },
});
const names = positionals.length > 0 ? positionals : Object.keys(parts);
const unknown = names.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0)
  throw new Error(`${unknown.join(', ')}: the parts are ${Object.keys(parts).join(', ')}`);

const databases = await startDatabases();
const rows = [];
for (const name of names) {
  const started = performance.now();
  const report = (line) => print(`${name}: ${line}`);
  rows.push(
    ...(await parts[name]({
      databases,
      rounds: Number(given.rounds),
      entries: Math.round(1_000_000 * Number(given.scale)),
      report,
    })),
  );
  report(`done after ${((performance.now() - started) / 1000).toFixed(0)} s`);
}
await databases.stop();
printTable(rows);
