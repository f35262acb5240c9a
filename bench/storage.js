// Measures the PostgreSQL store from outside, on a database server of its own: `node bench/storage.js [part…]` runs
// the named parts, or all of them. Options: --seconds S and --rounds N lengthen or shorten the measurements,
// --drains N repeats the drain, --scale F multiplies the sizes of filled tables, --server FILE measures another
// build.
import { parseArgs } from 'node:util';
import { print, printTable } from './kit.js';
import { startDatabases } from './storage/databases.js';
import { measureDeliveries, measureDrain } from './storage/deliveries.js';
import { measureFind } from './storage/find.js';
import { measurePublish } from './storage/publish.js';
import { measureEmptying, measureSnapshot } from './storage/rough.js';
import { measureStart } from './storage/start.js';
import { measureSweeps } from './storage/sweeps.js';
import { measureWebhooks } from './storage/webhooks.js';

const parts = {
  start: measureStart,
  publish: measurePublish,
  deliveries: measureDeliveries,
  drain: measureDrain,
  sweeps: measureSweeps,
  find: measureFind,
  snapshot: measureSnapshot,
  emptying: measureEmptying,
  webhooks: measureWebhooks,
};

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    drains: { type: 'string', default: '10' },
    scale: { type: 'string', default: '1' },
    server: { type: 'string' },
  },
});
const names = positionals.length > 0 ? positionals : Object.keys(parts);
const unknown = names.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0)
  throw new Error(`${unknown.join(', ')}: the parts are ${Object.keys(parts).join(', ')}`);

const databases = await startDatabases();

/** A part that fails must not lose the figures of the others. */
async function run(name) {
  try {
    return await parts[name]({
      databases,
      ms: Number(given.seconds) * 1000,
      rounds: Number(given.rounds),
      drains: Number(given.drains),
      scale: Number(given.scale),
      entry: given.server,
      report: (line) => print(`${name}: ${line}`),
    });
  } catch (error) {
    print(`${name}: ${error.stack}`);
    return [{ figure: `${name}: ${error.message}`, required: 'no error', measured: '', isMet: false }];
  }
}

const rows = [];
for (const name of names) {
  const started = performance.now();
  rows.push(...(await run(name)));
  print(`${name}: done after ${((performance.now() - started) / 1000).toFixed(0)} s`);
}
await databases.stop();
printTable(rows);
