// Reads the processor time of processes, in milliseconds.
import { readFileSync, readdirSync } from 'node:fs';

const read = (path) => {
  try {
    return readFileSync(`/proc/${path}`, 'latin1');
  } catch {
    // The process has ended.
    return '';
  }
};

/** The time of all threads. `schedstat` counts nanoseconds. */
export function processorMs(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  return (
    threads.reduce((sum, id) => sum + Number(read(`${pid}/task/${id}/schedstat`).split(' ')[0]), 0) / 1e6
  );
}

export const parentOf = (pid) => Number(statOf(pid)[1]);

/** The time of a process of PostgreSQL and its children, and of children that have ended. */
export function processorMsOfTree(pid) {
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  const nanoseconds = [pid, ...children].map((each) => Number(read(`${each}/schedstat`).split(' ')[0]));
  // Fields 13 and 14 after the process name are the times of ended children, in ticks of 10 ms.
  const [user, system] = statOf(pid).slice(13, 15);
  return nanoseconds.reduce((sum, time) => sum + time / 1e6, (Number(user) + Number(system)) * 10);
}

const statOf = (pid) =>
  read(`${pid}/stat`)
    .replace(/^.*\) /s, '')
    .split(' ');
