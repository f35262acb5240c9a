// Measures how long the machine stalls during each test, and notes it in the errors of a test that fails. The
// configuration of Vitest repeats a test with such a note.
import { Worker } from 'node:worker_threads';
import { beforeEach } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';

const beatMs = 50;
const stallMs = 1_000;

/**
 * A thread that only beats. What a test itself does, for example compute or wait for a program, does not delay it; a
 * machine that gives the process no processor time does.
 */
const beat = `
  const { workerData: longest } = require('node:worker_threads');
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    const gap = Math.round(now - last - ${beatMs});
    if (gap > Atomics.load(longest, 0)) Atomics.store(longest, 0, gap);
    last = now;
  }, ${beatMs});
`;

/** The thread measures for all files of a worker. */
const shared = globalThis as { longestStall?: Int32Array };

function startBeat(): Int32Array {
  const longest = new Int32Array(new SharedArrayBuffer(4));
  new Worker(beat, { eval: true, workerData: longest }).unref();
  return longest;
}

const longest = (shared.longestStall ??= startBeat());

beforeEach(({ task, onTestFailed }) => {
  Atomics.store(longest, 0, 0);
  const before = task.result?.errors?.length ?? 0;
  onTestFailed(async () => {
    // After a stall, the thread beats again at the same moment at which the test goes on.
    await realRuntime.sleep(2 * beatMs);
    const ms = Atomics.load(longest, 0);
    if (ms < stallMs) return;
    for (const error of task.result?.errors?.slice(before) ?? [])
      error.message += ` [the machine stalled for ${(ms / 1000).toFixed(1)} s]`;
  });
});
