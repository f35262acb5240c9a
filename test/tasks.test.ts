// Tests the background tasks.
import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { realRuntime } from '../src/lib/runtime.ts';
import { createTasks } from '../src/lib/tasks.ts';

/** More than Node allows by default; test/kit/warnings.setup.ts fails the file if Node warns. */
const many = Array.from({ length: 20 });

it('many tasks can listen to the signal', async () => {
  const tasks = createTasks(realRuntime, () => undefined);
  const signals = new Set<AbortSignal>();
  many.forEach(() =>
    tasks.start('task', async (signal) => {
      signals.add(signal);
      await realRuntime.sleep(60_000, signal);
    }),
  );
  const [shared] = signals;
  expect(signals.size).toBe(1);
  expect(shared && getEventListeners(shared, 'abort')).toHaveLength(many.length);
  await tasks.stop();
});
