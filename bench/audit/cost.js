// Measures how much processor time the audit trail adds to a write operation, in the server and in all processes of
// PostgreSQL. Servers with and without the trail take turns: each pair of turns gives a ratio, and the result is
// the median.
import { join } from 'node:path';
import { bundleVariant } from '../../scripts/bundle.js';
import { median } from '../kit.js';
import { startServer } from '../server.js';
import { withClient } from '../storage/databases.js';
import { processorMs, processorMsOfTree, parentOf } from './processor.js';

const maxMore = 0.15;
/** The memory layout of a process makes it a few percent faster or slower for its whole life. */
const starts = 3;
/** With several writers, one transaction of PostgreSQL has several changes. */
const plans = {
  // The warm-up fills the trail: then the store removes an entry for each new one.
  memory: { warmUp: 12_000, turns: { 8: 2_000 } },
  PostgreSQL: { warmUp: 2_000, turns: { 1: 100, 8: 400 } },
};

let number = 0;
const writes = {
  createFolder: () => [
    'services/createFolder',
    { folderName: `Folder${(number += 1)}`, description: 'For the bench' },
  ],
  'edit of a service': () => [
    'services/Bench.MapServer/edit',
    { description: `Edited ${(number += 1)} times`, capabilities: `Map,Query${number % 10}` },
  ],
  'webhook settings': () => [
    'services/webhooks/settings',
    { numberOfFailures: String(1 + ((number += 1) % 9_000)), daysInPast: String(1 + (number % 30)) },
  ],
};

const { folder, remove } = await bundleVariant({
  withoutEntries: 'bench/audit/without-entries.js',
  withoutToken: 'bench/audit/without-token.js',
});
process.on('exit', remove);

const variants = {
  with: undefined,
  withoutEntries: join(folder, 'withoutEntries.js'),
  withoutToken: join(folder, 'withoutToken.js'),
};

export async function measureCost({ databases, rounds, report }) {
  return [
    ...(await measureStore('memory', { rounds, report })),
    ...(await measureStore('PostgreSQL', { rounds, report, databases })),
  ];
}

async function measureStore(store, { rounds, report, databases }) {
  const { warmUp, turns } = plans[store];
  const works = Object.entries(turns).flatMap(([writers, count]) =>
    Object.entries(writes).map(([name, write]) => ({ name, write, writers, count, measured: [] })),
  );
  for (let start = 0; start < starts; start += 1) {
    const names = Object.keys(variants).filter((name) => databases || name !== 'withoutToken');
    const sides = {};
    for (const name of names) sides[name] = await startSide(variants[name], databases);
    for (const side of Object.values(sides))
      for (const { write } of works) await side.run(write, 8, Math.ceil(warmUp / works.length));
    for (const { write, writers, count, measured } of works)
      for (let round = 0; round < rounds; round += 1) {
        const costs = {};
        // The order alternates, because the second turn of a round may find a busier machine.
        for (const side of round % 2 === 0 ? names : names.toReversed())
          costs[side] = await sides[side].run(write, Number(writers), count);
        measured.push(costs);
      }
    for (const { stop } of Object.values(sides)) await stop();
    report(`${store}: ${start + 1} of ${starts} starts`);
  }
  return works.flatMap((work) => toRows(store, work));
}

function toRows(store, { name, writers, measured }) {
  const show = (side) => `${(median(measured.map((costs) => costs[side])) * 1000).toFixed(0)} µs`;
  const compare = (side, other) => median(measured.map((costs) => costs[side] / costs[other]));
  const ratio = compare('with', 'withoutEntries');
  const row = {
    figure: `${store}, ${name}, writers: ${writers}, processor time: ${show('with')} to ${show('withoutEntries')}`,
    required: `at most ${1 + maxMore}`,
    measured: ratio.toFixed(2),
    isMet: ratio <= 1 + maxMore,
  };
  if (measured[0].withoutToken === undefined) return [row];
  const figure = `  reading the token in the transaction: ${show('withoutEntries')} to ${show('withoutToken')}`;
  return [row, { figure, measured: compare('withoutEntries', 'withoutToken').toFixed(2) }];
}

/** A server on a store of its own. `run` returns the processor time of a write. */
async function startSide(entry, databases) {
  const databaseUrl = await databases?.create();
  const postmaster = databaseUrl && (await withClient(databaseUrl, postmasterOf));
  const server = await startServer({ storeUrl: databaseUrl, entry, env: { MAX_SERVICES: '100000' } });
  await server.signIn();
  await server.admin('services/createService', { serviceName: 'Bench', type: 'MapServer' });
  const usedMs = () => processorMs(server.pid) + (postmaster ? processorMsOfTree(postmaster) : 0);
  return {
    async run(write, writers, total) {
      const before = usedMs();
      let left = total;
      async function repeat() {
        while (left > 0) {
          left -= 1;
          await server.admin(...write());
        }
      }
      await Promise.all(Array.from({ length: writers }, repeat));
      return (usedMs() - before) / total;
    },
    async stop() {
      await server.stop();
      if (databaseUrl) await databases.drop(databaseUrl);
    },
  };
}

async function postmasterOf(client) {
  const { rows } = await client.query('select pg_backend_pid() as pid');
  return parentOf(rows[0].pid);
}
