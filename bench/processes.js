// The processor time of processes, from /proc.
import { readFileSync, readdirSync } from 'node:fs';

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
