// Measures what one faulty process does to the others, and how soon it works again: it is stopped, or its
// connections to the database hang.
import { setTimeout as pause } from 'node:timers/promises';
import { startServers } from '../server.js';
import { withClient } from './databases.js';
import { startProxies } from './proxy.js';
import { Writers } from './writers.js';

const writersPerProcess = { publish: 6, settings: 2 };
const kinds = Object.keys(writersPerProcess);
/** With a delay, a process spends more of its time in transactions. */
const delayMs = 2;
const warmUpMs = 2_000;
const calmMs = 3_000;
const longMs = 15_000;
const shortMs = 4_000;
const recoverWithinMs = 30_000;

const maxPauseMs = 2_000;
const maxRecoveryMs = 3_000;
const maxWaitMs = 10_000;

/** The last of the three processes is the faulty one. */
const faulty = 2;

const stop = {
  begin: (servers) => servers[faulty].signal('SIGSTOP'),
  undo: (servers) => servers[faulty].signal('SIGCONT'),
};
const hang = {
  begin: (_servers, proxies) => proxies.hang(faulty),
  undo: (_servers, proxies) => proxies.resume(faulty),
};

const faults = [
  { name: 'one process is stopped for 15 s', ms: longMs, ...stop, isStopped: true },
  { name: 'the connections of one process hang for 15 s', ms: longMs, ...hang },
  { name: 'connections hang for 4 s and continue', ms: shortMs, ...hang, boundsRecovery: true },
  {
    name: 'connections hang for 4 s and are lost',
    ms: shortMs,
    ...hang,
    end: (_servers, proxies) => proxies.resume(faulty, { losesOld: true }),
    boundsRecovery: true,
  },
];

// A fault does the most harm if it leaves a transaction open that has written something. A fault that does not is
// undone and tried again.

const tries = 30;
const lookAfterMs = 60;

const openTransactions = `
  select count(*)::int as count from pg_stat_activity
  where datname = current_database() and state = 'idle in transaction' and backend_xid is not null
    and state_change < clock_timestamp() - interval '${lookAfterMs / 2} milliseconds'`;

async function beginBadly(fault, servers, proxies, client) {
  for (let n = 1; ; n += 1) {
    await pause(lookAfterMs * (1 + Math.random()));
    const from = performance.now();
    fault.begin(servers, proxies);
    await pause(lookAfterMs);
    const { rows } = await client.query(openTransactions);
    if (rows[0].count > 0) return { from, effect: 'a transaction stayed open' };
    if (n === tries) return { from, effect: 'no transaction stayed open' };
    fault.undo(servers, proxies);
  }
}

export async function measureFaults({ databases, entry, report }) {
  const databaseUrl = await databases.create();
  const proxies = await startProxies(databaseUrl, 3, { delayMs });
  const servers = await startServers(3, { storeUrls: proxies.urls, entry });
  const writers = new Writers();
  for (const server of servers) {
    for (const kind of kinds) writers.start(kind, server, writersPerProcess[kind]);
  }
  await pause(warmUpMs);
  const others = servers.filter((_, n) => n !== faulty);
  const longestPause = (from, to) =>
    Math.max(
      ...others.flatMap((server) =>
        kinds.map((kind) => writers.between(from, to, { kind, server }).longestPause),
      ),
    );

  const calmFrom = performance.now();
  await pause(calmMs);
  const calm = longestPause(calmFrom, performance.now());
  const results = [];
  for (const fault of faults) {
    const { from, effect } = await withClient(databaseUrl, (client) =>
      beginBadly(fault, servers, proxies, client),
    );
    await pause(fault.ms);
    const endedAt = performance.now();
    (fault.end ?? fault.undo)(servers, proxies);
    const recoveryMs = await waitForWrites(writers, servers[faulty], endedAt);
    await pause(calmMs);
    const to = performance.now();
    results.push({ ...fault, from, to, recoveryMs, pauseMs: longestPause(from, to) });
    report(
      `${fault.name} (${effect}): others paused ${results.at(-1).pauseMs.toFixed(0)} ms, back after ${recoveryMs.toFixed(0)} ms`,
    );
  }
  await writers.stop();
  const waits = results.flatMap(({ from, to, isStopped }) =>
    // Requests to a stopped process have to wait.
    (isStopped ? others : servers).map((server) => writers.between(from, to, { server }).longestWait),
  );
  await Promise.all(servers.map((server) => server.kill()));
  proxies.stop();
  await databases.drop(databaseUrl);
  return toRows(results, calm, Math.max(...waits));
}

/** Resolves with the time from `since` until the process has accepted a write of each kind. */
async function waitForWrites(writers, server, since) {
  const acceptedAt = () =>
    Math.max(...kinds.map((kind) => writers.between(since, Infinity, { kind, server }).firstAcceptedAt));
  while (acceptedAt() === Infinity && performance.now() - since < recoverWithinMs) await pause(20);
  return acceptedAt() - since;
}

function toRows(results, calm, longestWait) {
  const seconds = (ms) =>
    ms === Infinity ? `over ${recoverWithinMs / 1000} s` : `${(ms / 1000).toFixed(2)} s`;
  return [
    ...results.map(({ name, pauseMs }) => ({
      figure: `longest pause of writes of the others, ${name} (without: ${seconds(calm)})`,
      required: `at most ${maxPauseMs / 1000} s`,
      measured: seconds(pauseMs),
      isMet: pauseMs <= maxPauseMs,
    })),
    ...results.map(({ name, recoveryMs, boundsRecovery }) => ({
      figure: `time until the process accepts writes, ${name}`,
      required: boundsRecovery ? `at most ${maxRecoveryMs / 1000} s` : undefined,
      measured: seconds(recoveryMs),
      isMet: recoveryMs <= maxRecoveryMs,
    })),
    {
      figure: 'longest wait for an answer, refusals included',
      required: `at most ${maxWaitMs / 1000} s`,
      measured: seconds(longestWait),
      isMet: longestWait <= maxWaitMs,
    },
  ];
}
