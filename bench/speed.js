// Compares the speed of the server with a bare Fastify application that sends the same bytes, and with the npm
// package `soap` on the same WSDL. Options: --rounds N, --seconds S, --only <part of a name>.
import { parseArgs } from 'node:util';
import { print } from './kit.js';
import { startLoad } from './speed/processes.js';
import { compareRates } from './speed/rounds.js';
import { compareStarts, measureLargeCatalog } from './speed/standing.js';
import { works } from './speed/works.js';

const { values: given } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
  },
});
const rounds = Number(given.rounds);
const isSelected = (name) => name.toLowerCase().includes(given.only.toLowerCase());

const atLeast = (bound) => ({ bound, wanted: `at least ${bound}`, meets: (ratio) => ratio >= bound });
const atMost = (bound) => ({ bound, wanted: `at most ${bound}`, meets: (ratio) => ratio <= bound });

function makeRow(name, { ours, limit, ratio, against, ...others }) {
  return {
    name,
    ours,
    limit,
    ratio,
    wanted: against.wanted,
    bound: against.bound,
    isMet: against.meets(ratio),
    ...others,
  };
}

async function measureRates() {
  const load = startLoad();
  const rows = [];
  for (const work of works.filter(({ name }) => isSelected(name))) {
    const figures = await compareRates(work, load, { rounds, ms: Number(given.seconds) * 1000 });
    const { ratio, ratioToPeer, costs, loadBusy } = figures;
    const row = makeRow(work.name, {
      ours: `${figures.server.toFixed(0)}/s`,
      limit: `${figures.limit.toFixed(0)}/s`,
      ratio: costs.limit / costs.server,
      against: atLeast(work.wanted),
      byRate: ratio,
      peer: ratioToPeer || undefined,
      isRate: true,
      loadBusy,
    });
    rows.push(row);
  }
  load.stop();
  return rows;
}

const names = {
  start: 'start to first answer',
  idle: 'resident memory idle',
  large: 'resident memory with 100,000 services',
};
const maxMegabytes = 250;

async function measureStanding() {
  const rows = [];
  if (isSelected(names.start) || isSelected(names.idle)) {
    const { start, idle } = await compareStarts(Math.max(7, rounds));
    const format = ({ server, limit, ratio }, unit) => ({
      ours: `${server.toFixed(0)} ${unit}`,
      limit: `${limit.toFixed(0)} ${unit}`,
      ratio,
    });
    rows.push(makeRow(names.start, { ...format(start, 'ms'), against: atMost(1.8) }));
    rows.push(makeRow(names.idle, { ...format(idle, 'MB'), against: atMost(1.4) }));
  }
  if (isSelected(names.large)) {
    const megabytes = await measureLargeCatalog();
    const figures = { ours: `${megabytes.toFixed(0)} MB`, limit: `${maxMegabytes} MB` };
    rows.push(makeRow(names.large, { ...figures, ratio: megabytes / maxMegabytes, against: atMost(1) }));
  }
  return rows.filter(({ name }) => isSelected(name));
}

function printRows(rows) {
  const printRow = (name, ...cells) =>
    print(`${name.padEnd(60)}${cells.map((cell, n) => cell.padEnd(widths[n])).join('')}`.trimEnd());
  const widths = [10, 10, 8, 9, 15, 10, 6];
  printRow('work', 'ours', 'limit', 'ratio', 'by rate', 'wanted', 'of peer');
  for (const { name, ours, limit, byRate, ratio, wanted, peer, isMet } of rows) {
    const figures = [ours, limit, ratio.toFixed(2), byRate?.toFixed(2) ?? '', wanted];
    printRow(name, ...figures, peer ? `${peer.toFixed(1)} ×` : '', isMet ? 'ok' : 'missed');
  }
}

const rows = [...(await measureRates()), ...(await measureStanding())];
printRows(rows);
const loadBusy = Math.max(0, ...rows.map((row) => row.loadBusy ?? 0));
print(
  `The ratio of requests is that of the CPU time per request. The load generator used ${Math.ceil(loadBusy * 100)} % of a core at most.`,
);
if (rows.some(({ isMet }) => !isMet)) process.exitCode = 1;
