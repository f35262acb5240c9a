// Measures how publishing scales with the number of processes, through a proxy that adds a delay to the database.
// The delay makes the order of the writes the bottleneck, rather than the processor.
import { setTimeout as pause } from 'node:timers/promises';
import { median } from '../kit.js';
import { startReceivers } from '../receivers.js';
import { createWebhooks, startServers } from '../server.js';
import { watchLocks, watchProcessors } from './machine.js';
import { startProxies } from './proxy.js';
import { Writers } from './writers.js';

const delayMs = 5;
const writersPerProcess = 16;
const counts = [1, 3, 6];
const subscribers = 3;
/** Events may be published faster than they are delivered. */
const env = { WEBHOOK_MAX_PENDING: '10000000', WEBHOOK_MAX_PENDING_BYTES: String(2 ** 40) };
/** The measurement begins when each process has accepted this many events: until then, it compiles its code. */
const warmUpEvents = 2_000;
const warmUpWithinMs = 40_000;
/** Beyond this, the processor is the bottleneck and not the store. */
const maxBusy = 0.9;
const maxWaiting = 0.05;
const maxSlower = 1.2;

async function measureOnce(servers, databaseUrl, ms) {
  const writers = new Writers().start('settings', servers[0], 1);
  for (const server of servers) writers.start('publish', server, writersPerProcess);
  const begin = performance.now();
  const isWarm = (server) => writers.between(begin, Infinity, { server }).accepted >= warmUpEvents;
  while (!servers.every(isWarm) && performance.now() - begin < warmUpWithinMs) await pause(100);
  const stopLocks = await watchLocks(databaseUrl);
  const readBusy = watchProcessors();
  const from = performance.now();
  await pause(ms);
  const to = performance.now();
  const busy = readBusy();
  const waiting = await stopLocks();
  await writers.stop();
  const published = writers.between(from, to, { kind: 'publish' });
  if (published.refused > 0) throw new Error(`${published.refused} events were refused`);
  const administrative = writers.between(from, to, { kind: 'settings' });
  return {
    rate: published.rate,
    busy,
    waiting,
    p50: administrative.duration(0.5),
    p95: administrative.duration(0.95),
  };
}

/** The median time of an administrative write while nothing is published. */
async function measureAlone(servers, ms) {
  const writers = new Writers().start('settings', servers[0], 1);
  await pause(ms);
  const from = performance.now();
  await pause(ms);
  await writers.stop();
  return writers.between(from, Infinity, { kind: 'settings' }).duration(0.5);
}

export async function measurePublish({ databases, ms, rounds, entry, report }) {
  const receivers = await startReceivers({ answering: subscribers });
  const variants = { 'nobody subscribed': [], [`${subscribers} subscribed`]: receivers.answering };
  const results = Object.fromEntries(
    Object.keys(variants).map((name) => [name, Object.fromEntries(counts.map((count) => [count, []]))]),
  );
  const alone = Object.fromEntries(counts.map((count) => [count, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const count of counts) {
      const databaseUrl = await databases.create();
      const proxies = await startProxies(databaseUrl, count, { delayMs });
      const servers = await startServers(count, { storeUrls: proxies.urls, env, entry });
      alone[count].push(await measureAlone(servers, ms / 2));
      for (const [name, urls] of Object.entries(variants)) {
        if (urls.length > 0) await createWebhooks(servers[0], urls);
        const result = await measureOnce(servers, databaseUrl, ms);
        results[name][count].push(result);
        report(`${name}, ${count} processes: ${result.rate.toFixed(0)}/s`);
      }
      await Promise.all(servers.map((server) => server.kill()));
      proxies.stop();
      await databases.drop(databaseUrl);
    }
  }
  receivers.stop();
  const [one, ...more] = counts;
  return [
    ...Object.entries(results).flatMap(([name, byCount]) => toRows(name, byCount)),
    ...more.map((count) => compareAlone(count, median(alone[count]), median(alone[one]))),
  ];
}

function compareAlone(count, some, one) {
  return {
    figure: `settings alone, p50, ${count} processes to 1: ${some.toFixed(0)} ms to ${one.toFixed(0)} ms`,
    required: `at most ${maxSlower}`,
    measured: (some / one).toFixed(2),
    isMet: some / one <= maxSlower,
  };
}

function toRows(name, byCount) {
  const [one, three, six] = counts.map((count) =>
    Object.fromEntries(
      ['rate', 'busy', 'waiting', 'p50', 'p95'].map((figure) => [
        figure,
        median(byCount[count].map((result) => result[figure])),
      ]),
    ),
  );
  const percent = (share) => `${(share * 100).toFixed(0)} %`;
  const compareRates = (label, [more, fewer], least) => {
    const ratio = more.rate / fewer.rate;
    return {
      figure: `publish, ${name}, ${label}: ${more.rate.toFixed(0)}/s to ${fewer.rate.toFixed(0)}/s, processor ${percent(more.busy)} busy`,
      required: `at least ${least}`,
      measured: ratio.toFixed(2),
      ratio,
      busy: more.busy,
      isMet: ratio >= least,
    };
  };
  const scaling = compareRates('3 processes to 1', [three, one], 2);
  if (!scaling.isMet && scaling.busy > maxBusy) scaling.required = undefined;
  const waiting = Math.max(one.waiting, three.waiting, six.waiting);
  const compareWrites = (count, some) => {
    const ratio = some.p50 / one.p50;
    const show = ({ p50, p95 }) => `${p50.toFixed(0)}/${p95.toFixed(0)} ms`;
    return {
      figure: `settings beside it, p50/p95, ${count} processes to 1: ${show(some)} to ${show(one)}`,
      required: ratio > maxSlower && some.busy > maxBusy ? undefined : `at most ${maxSlower}`,
      measured: ratio.toFixed(2),
      isMet: ratio <= maxSlower,
    };
  };
  return [
    scaling,
    compareRates('6 processes to 3', [six, three], 1),
    {
      figure: `busy sessions that wait for a lock, ${name}, the largest share of 1, 3 and 6 processes`,
      required: `at most ${percent(maxWaiting)}`,
      measured: `${(waiting * 100).toFixed(1)} %`,
      isMet: waiting <= maxWaiting,
    },
    compareWrites(3, three),
    compareWrites(6, six),
  ];
}
