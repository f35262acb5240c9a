// Starts processes, and reads their processor time and memory from /proc.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';

const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Resolves with the address on which the program listens, as it writes it to its standard error. */
export async function startProcess(file, { args = [], env }) {
  const child = spawn(process.execPath, [file, ...args], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return { child, address: await listening(child) };
}

function listening(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stderr.on('data', (chunk) => {
      output += chunk;
      const found = /listens on (http:\S+)/.exec(output);
      if (found) resolve(found[1]);
    });
    child.once('exit', () => reject(new Error(`${child.spawnargs.join(' ')} ended: ${output}`)));
  });
}

const msPerTick = 10;

/** `ownMs` and `endedMs`: the processor time of the process itself, and of its children that have ended. */
export function readProcess(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The second field is the name in parentheses, which may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [userTicks, systemTicks, endedUserTicks, endedSystemTicks] = fields.slice(11, 15).map(Number);
  return {
    parent: Number(fields[1]),
    ownMs: (userTicks + systemTicks) * msPerTick,
    endedMs: (endedUserTicks + endedSystemTicks) * msPerTick,
  };
}

/** The processor time of all threads that run, exact to a nanosecond. Unlike `ownMs`, it measures a few requests. */
export function scheduledMs(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  const read = (thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]);
  return threads.reduce((sum, thread) => sum + read(thread), 0) / 1e6;
}

/** The resident memory now and its peak, in MB. */
export function readMemory(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const read = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)[1]) / 1024;
  return { resident: read('VmRSS'), peak: read('VmHWM') };
}

export function childrenOf(pid) {
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return pids.filter((child) => readIfAlive(child)?.parent === pid);
}

export function processorMs(pids) {
  return pids.reduce((sum, pid) => sum + (readIfAlive(pid)?.ownMs ?? 0), 0);
}

function readIfAlive(pid) {
  try {
    return readProcess(pid);
  } catch {
    return undefined;
  }
}
