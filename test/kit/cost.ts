// Checks the processor time that a piece of work takes. Only `npm run bench:cost` measures it: `npm test` runs the
// work once and checks no time.
import { readFileSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';

const isMeasured = process.env.MEASURE_COST !== undefined;

/** A busy machine, or the first compilation of a function, makes a single run more expensive. */
const maxRuns = 5;

/** The most expensive work of each test that has not ended, as a share of its allowed time. */
const highest = new Map<string, { ms: number; maxMs: number }>();

/** CPU time in milliseconds: of this thread on Linux, elsewhere of the process. */
export function cpuMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ', 1)[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

/**
 * Runs the work and returns its result. A measurement repeats it until it takes at most `maxMs`, and fails if it
 * never does.
 */
export async function expectCost<T>(maxMs: number, work: () => T | Promise<T>): Promise<T> {
  if (!isMeasured) return work();
  let least = Infinity;
  for (let run = 1; ; run += 1) {
    const before = cpuMs();
    const result = await work();
    least = Math.min(least, cpuMs() - before);
    if (least > maxMs && run < maxRuns) continue;
    checkCost(maxMs, least);
    return result;
  }
}

/** Checks work that the test has measured itself. Does nothing in `npm test`. */
export function checkCost(maxMs: number, ms: number): void {
  if (!isMeasured) return;
  const name = expect.getState().currentTestName ?? '';
  const before = highest.get(name);
  if (!before) onTestFinished(() => print(name));
  if (!before || ms / maxMs > before.ms / before.maxMs) highest.set(name, { ms, maxMs });
  expect(ms, 'milliseconds of processor time').toBeLessThanOrEqual(maxMs);
}

function print(name: string): void {
  const { ms = 0, maxMs = 0 } = highest.get(name) ?? {};
  highest.delete(name);
  process.stdout.write(`${ms.toFixed(1)} of ${maxMs} ms: ${name}\n`);
}
