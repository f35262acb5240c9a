// Measures what the removal of expired data does to writes. A process sweeps soon after its start: it starts once
// on a database with much expired data, and again when that is gone.
import { setTimeout as pause } from 'node:timers/promises';
import { startServer } from '../server.js';
import { withClient } from './databases.js';
import { countExpired, fillEventIds, fillJobs, fillTokens, settle } from './fill.js';
import { Writers } from './writers.js';

const sizes = { eventIds: 1_000_000, tokens: 100_000, jobs: 1_000 };
const messagesPerJob = 300;
const jobHistory = 10;
const writersByKind = { publish: 6, settings: 2 };
const lookEveryMs = 1_000;
const leastMs = 12_000;
const maxMs = 60_000;
const maxSlowerMs = 50;

export async function measureSweeps({ databases, scale, entry, report }) {
  const size = (name) => Math.round(sizes[name] * scale);
  const databaseUrl = await databases.create();
  const options = { storeUrl: databaseUrl, env: { JOB_HISTORY: String(jobHistory) }, entry };
  await (await startServer(options)).stop();
  report('filling the database');
  const at = Date.now();
  await withClient(databaseUrl, async (client) => {
    await fillEventIds(client, size('eventIds'), at - 25 * 3_600_000);
    await fillTokens(client, size('tokens'), at - 1_000);
    await fillJobs(client, size('jobs') + jobHistory, messagesPerJob, at - 86_400_000);
    await settle(client);
  });
  const look = () => withClient(databaseUrl, (client) => countExpired(client, jobHistory));
  const isClean = async () => Object.values(await look()).every((count) => count === 0);

  async function write(isOver) {
    const server = await startServer(options);
    await server.signIn();
    const writers = new Writers();
    for (const [kind, count] of Object.entries(writersByKind)) writers.start(kind, server, count);
    const from = performance.now();
    do await pause(lookEveryMs);
    while (!(await isOver(performance.now() - from)));
    const to = performance.now();
    await writers.stop();
    await server.kill();
    const writes = writers.between(from, to);
    const figures = { p99: writes.duration(0.99), max: writes.duration(1), pause: writes.longestPause };
    return { ...figures, rate: writes.rate, ms: to - from };
  }
  const during = await write(async (ms) => ms >= maxMs || (ms >= leastMs && (await isClean())));
  const left = await look();
  report(`removed within ${(during.ms / 1000).toFixed(0)} s, or still there: ${JSON.stringify(left)}`);
  const without = await write((ms) => ms >= leastMs);
  await databases.drop(databaseUrl);

  const show = (name) => `${during[name].toFixed(0)} ms with and ${without[name].toFixed(0)} ms without`;
  const difference = (name) => `${(during[name] - without[name]).toFixed(0)} ms`;
  return [
    {
      figure: `p99 of writes beside sweeps: ${show('p99')}`,
      required: `at most ${maxSlowerMs} ms`,
      measured: difference('p99'),
      isMet: during.p99 - without.p99 <= maxSlowerMs,
    },
    { figure: `longest write: ${show('max')}`, measured: difference('max') },
    { figure: `longest pause of accepted writes: ${show('pause')}`, measured: difference('pause') },
    {
      figure: `writes per second beside sweeps: ${during.rate.toFixed(0)} with and ${without.rate.toFixed(0)} without`,
      measured: (during.rate / without.rate).toFixed(2),
    },
    ...Object.entries(left).map(([name, count]) => ({
      figure: `${labels[name]} left after ${(during.ms / 1000).toFixed(0)} s`,
      required: '0',
      measured: String(count),
      isMet: count === 0,
    })),
  ];
}

const labels = {
  eventIds: 'expired event ids',
  tokens: 'expired tokens',
  jobs: 'jobs with messages beyond JOB_HISTORY',
};
