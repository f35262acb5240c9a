// Compares the processor time of a request, the start and the memory of the server with those of a bare Fastify
// application that sends the same bytes. Fails if a figure has lost more than a twentieth of what docs/benchmarks.md
// says. Options: --rounds N, --only <part of a name>, --warm-up <requests>.
import { readFileSync } from 'node:fs';
import { URL } from 'node:url';
import { parseArgs } from 'node:util';
import { printTable } from './kit.js';
import { startLoad } from './speed/processes.js';
import { compareCosts } from './speed/rounds.js';
import { compareStarts, measureLargeCatalog } from './speed/standing.js';
import { works } from './speed/works.js';

const { values: given } = parseArgs({
  options: {
    rounds: { type: 'string', default: '6' },
    only: { type: 'string', default: '' },
    'warm-up': { type: 'string' },
  },
});
const rounds = Number(given.rounds);
const warmUp = given['warm-up'] && Number(given['warm-up']);
const isSelected = (name) => name.toLowerCase().includes(given.only.toLowerCase());

/** From the table of the page, such as `| start to first answer | 1.50 |`. */
const page = readFileSync(new URL('../docs/benchmarks.md', import.meta.url), 'utf8');
const known = new Map(
  [...page.matchAll(/^\| (\S[^|]*?) +\| ([0-9.]+) +\|/gm)].map(([, name, ratio]) => [name, Number(ratio)]),
);
const allowedLoss = 0.95;

function makeRow(name, { ratio, measured, isCost }) {
  const figure = known.get(name);
  if (figure === undefined) throw new Error(`docs/benchmarks.md has no figure for "${name}".`);
  const bound = isCost ? figure / allowedLoss : figure * allowedLoss;
  return {
    figure: name,
    required: `${isCost ? 'at most' : 'at least'} ${bound.toFixed(2)}`,
    measured: `${ratio.toFixed(2)} ${measured}`,
    isMet: isCost ? ratio <= bound : ratio >= bound,
  };
}

async function measureRequests() {
  const load = startLoad();
  const rows = [];
  for (const work of works.filter(({ name }) => isSelected(name))) {
    const { ratio, quartiles, server, limit, loadBusy } = await compareCosts(
      { ...work, ...(warmUp && { warmUp }) },
      load,
      rounds,
    );
    const [low, high] = quartiles.map((quartile) => quartile.toFixed(2));
    const times = `${(server * 1000).toFixed(0)} µs beside ${(limit * 1000).toFixed(0)}`;
    const measured = `(${low} to ${high}): ${times}, load ${Math.ceil(loadBusy * 100)} %`;
    rows.push(makeRow(work.name, { ratio, measured }));
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
    const row = (name, { server, limit, ratio }, unit) =>
      makeRow(name, {
        ratio,
        measured: `${server.toFixed(0)} ${unit} beside ${limit.toFixed(0)}`,
        isCost: true,
      });
    rows.push(row(names.start, start, 'ms'), row(names.idle, idle, 'MB'));
  }
  if (isSelected(names.large)) {
    const megabytes = await measureLargeCatalog();
    const measured = `${megabytes.toFixed(0)} MB of ${maxMegabytes}`;
    rows.push(makeRow(names.large, { ratio: megabytes / maxMegabytes, measured, isCost: true }));
  }
  return rows.filter(({ figure }) => isSelected(figure));
}

printTable([...(await measureRequests()), ...(await measureStanding())]);
