// Samples of the machine and of the database during a measurement: how busy the processors are, and which sessions
// wait for a lock.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

const sampleEveryMs = 20;

function readProcessors() {
  const line = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0];
  const [user, nice, system, idle, ioWait, ...others] = line.trim().split(/\s+/).slice(1, 9).map(Number);
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  return { unused: idle + ioWait, total: sum([user, nice, system, idle, ioWait, ...others]) };
}

/** Returns a function that returns the share of CPU time that was used since the call. */
export function watchProcessors() {
  const before = readProcessors();
  return () => {
    const after = readProcessors();
    return 1 - (after.unused - before.unused) / (after.total - before.total);
  };
}

// Sessions without a transaction are left out. If they counted, a larger pool would make the share smaller.
const countSessions = `
  select count(*) filter (where wait_event_type = 'Lock')::int as waiting, count(*)::int as busy
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' and state <> 'idle'`;

/** Samples the sessions of the database. The result is the share of busy sessions that waited for a lock of another. */
export async function watchLocks(databaseUrl) {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  let isOver = false;
  const totals = { waiting: 0, busy: 0 };
  async function sample() {
    while (!isOver) {
      const { rows } = await client.query({ name: 'sessions', text: countSessions });
      totals.waiting += rows[0].waiting;
      totals.busy += rows[0].busy;
      await pause(sampleEveryMs);
    }
  }
  const sampling = sample();
  return async () => {
    isOver = true;
    await sampling;
    await client.end();
    return totals.busy === 0 ? 0 : totals.waiting / totals.busy;
  };
}
