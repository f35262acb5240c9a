// Measures what the removal of expired rows does to writes. A process removes them soon after its start: it starts once
// on a database with many of them, and again when they are gone.
import { setTimeout as pause } from 'node:timers/promises';
import { startServer } from '../server.js';
import { withClient } from './databases.js';
import { Writers } from './writers.js';

const lookEveryMs = 1_000;
const leastMs = 12_000;
const maxSlowerMs = 50;

/**
 * `options` are those of the server, `what` names the removal, and `count` returns how many rows must still be removed,
 * by their names.
 */
export async function measureRemoval({ options, what, writersByKind, count, maxMs, report }) {
  const look = () => withClient(options.storeUrl, count);
  const isClean = async () => Object.values(await look()).every((left) => left === 0);

  async function write(isOver) {
    const server = await startServer(options);
    await server.signIn();
    const writers = new Writers();
    for (const [kind, loops] of Object.entries(writersByKind)) writers.start(kind, server, loops);
    const from = performance.now();
    do await pause(lookEveryMs);
    while (!(await isOver(performance.now() - from)));
    const to = performance.now();
    await writers.stop();
    await server.kill();
    const writes = writers.between(from, to);
    return {
      p50: writes.duration(0.5),
      p99: writes.duration(0.99),
      max: writes.duration(1),
      pause: writes.longestPause,
      rate: writes.rate,
      ms: to - from,
    };
  }
  const during = await write(async (ms) => ms >= maxMs || (ms >= leastMs && (await isClean())));
  const left = await look();
  const seconds = (during.ms / 1000).toFixed(0);
  report(`removed within ${seconds} s, or still there: ${JSON.stringify(left)}`);
  const without = await write((ms) => ms >= leastMs);

  const show = (name) => `${during[name].toFixed(0)} ms with and ${without[name].toFixed(0)} ms without`;
  const difference = (name) => `${(during[name] - without[name]).toFixed(0)} ms`;
  return [
    {
      figure: `p99 of writes beside ${what}: ${show('p99')}`,
      required: `at most ${maxSlowerMs} ms`,
      measured: difference('p99'),
      isMet: during.p99 - without.p99 <= maxSlowerMs,
    },
    { figure: `p50: ${show('p50')}`, measured: difference('p50') },
    { figure: `longest write: ${show('max')}`, measured: difference('max') },
    { figure: `longest pause of accepted writes: ${show('pause')}`, measured: difference('pause') },
    {
      figure: `writes per second beside ${what}: ${during.rate.toFixed(0)} with and ${without.rate.toFixed(0)} without`,
      measured: (during.rate / without.rate).toFixed(2),
    },
    ...Object.entries(left).map(([name, rows]) => ({
      figure: `${name} left after ${seconds} s`,
      required: '0',
      measured: String(rows),
      isMet: rows === 0,
    })),
  ];
}
