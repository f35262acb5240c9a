// The look at the images of the workloads that pages share.
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { ServiceError } from '../../src/lib/errors.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { createDriftReader } from '../../src/upgrades/starting/drift.ts';
import { deployment } from '../../src/upgrades/versions/deployment.ts';
import { freshDeployment } from '../kit/sample-manifest.ts';
import type { RepairPlan } from '../../src/upgrades/executors/workloads.ts';
import { simulatedInventory } from '../../src/upgrades/executors/simulated.ts';

const differs = { drift: '1 of 3 workloads differ.', isKnown: true };
const same = { drift: undefined, isKnown: true };
const unreadable = { drift: undefined, isKnown: false };

/** `found` is what the next looks find. The last one stays. */
function createReader(...found: (Pick<RepairPlan, 'drift' | 'isKnown'> | Error)[]) {
  const store = createMemoryStore({
    retention: { deliveries: { history: 1, recoverable: 1 }, jobs: 1 },
    maxEventIds: 1,
  });
  void store.update((transaction) => transaction.write(deployment, freshDeployment));
  const executor = createSimulatedExecutor({
    runtime: { sleep: () => Promise.resolve() },
    stepMs: 0,
    failures: new Map(),
  });
  let looks = 0;
  const inventory = () => {
    const plan = found[Math.min(looks, found.length - 1)] ?? same;
    looks += 1;
    if (plan instanceof Error) return Promise.reject(plan);
    return Promise.resolve({
      ...simulatedInventory,
      planRepair: () => ({ workloads: [], problems: [], notices: [], ...plan }),
    });
  };
  const clock = { at: 1000 };
  const read = createDriftReader(store, { ...executor, inventory }, { now: () => clock.at });
  return { read, clock, looks: () => looks };
}

it('serves all pages of half a minute', async () => {
  const { read, clock, looks } = createReader(differs, same);
  expect(await read()).toEqual({ isKnown: true, text: '1 of 3 workloads differ.' });
  clock.at += 29_999;
  expect(await read()).toEqual({ isKnown: true, text: '1 of 3 workloads differ.' });
  expect(looks()).toBe(1);
  clock.at += 1;
  expect(await read()).toBeUndefined();
});

it('is repeated for the next page if the cluster could not be read, which is not the same as no drift', async () => {
  const { read, looks } = createReader(unreadable, differs);
  const both = await Promise.all([read(), read()]);
  expect(both).toEqual([
    { isKnown: false, text: 'The cluster cannot be read, so the images of its workloads are unknown.' },
    { isKnown: false, text: 'The cluster cannot be read, so the images of its workloads are unknown.' },
  ]);
  expect(looks()).toBe(1);
  expect(await read()).toEqual({ isKnown: true, text: '1 of 3 workloads differ.' });
});

it('is repeated for the next page if the store was unavailable', async () => {
  const { read, clock } = createReader(
    new ServiceError('unavailable', 'The database cannot be reached.'),
    same,
  );
  await expect(read()).rejects.toThrow('The database cannot be reached.');
  clock.at += 1;
  expect(await read()).toBeUndefined();
});
