// A process in all but name: a store and a runner of its own, which halts where it is told to and can be declared dead. It does
// nothing by the clock, so that every death is at its exact place and the next one can follow at once.
import { ServiceError } from '../../src/errors.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import type { Store } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { createTasks } from '../../src/tasks.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { JobRunner } from '../../src/upgrades/job-runner.ts';
import { simulatedInventory } from '../../src/upgrades/workloads.ts';
import { realRuntime } from '../../src/runtime.ts';
import { records } from '../../src/records.ts';
import { migrations } from '../kit/store.ts';
import { timelessRuntime } from '../kit/runtime.ts';

/** Where it halts: while the executor is at work, before that is recorded, or when it is but this process never hears of it. */
export type Place = 'in the step' | 'before the record' | 'after the record';

/** What becomes of the next update when the database goes away. */
export type Trouble = 'nothing is done' | 'the answer is lost';

export type Peer = Awaited<ReturnType<typeof startPeer>>;

export const openPeerStore = (url: string) =>
  openPostgresStore({ url, records, migrations, runtime: timelessRuntime });

export async function startPeer(url: string, breaks: (workload: string) => boolean = () => false) {
  const store = await openPeerStore(url);
  const runtime = { ...realRuntime, post: () => Promise.reject(new Error('nobody')) };
  const crashes: unknown[] = [];
  const tasks = createTasks(runtime, (_name, error) => crashes.push(error));
  let place: Place | undefined;
  let isTakingUp = false;
  let trouble: Trouble | undefined;
  let wake: (() => void) | undefined;
  let onHalted: () => void = () => undefined;
  /** By this process while it was dead: what its runner was answered, and asked of the executor. */
  const afterlife = { answers: [] as unknown[], acts: 0 };
  let isDead = false;

  async function halt(at: Place): Promise<void> {
    if (place !== at) return;
    place = undefined;
    await new Promise<void>((resolve) => {
      wake = resolve;
      onHalted();
    });
  }

  async function act(): Promise<void> {
    if (isDead) afterlife.acts += 1;
    await halt('in the step');
  }
  const executor: Executor = {
    inventory: () => Promise.resolve(simulatedInventory),
    release: () => Promise.resolve(),
    perform: act,
    verify: act,
    rollback: act,
    async apply({ name }) {
      await act();
      if (breaks(name)) throw new Error('it breaks.');
    },
  };

  const watched: Store = {
    ...store,
    async update<T>(change: (transaction: Transaction) => T): Promise<T> {
      if (trouble) {
        if (trouble === 'the answer is lost') await store.update(change);
        trouble = undefined;
        throw new ServiceError('unavailable', 'The database cannot be reached.');
      }
      if (isTakingUp) {
        isTakingUp = false;
        return store.update(change);
      }
      await halt('before the record');
      const answer = await store.update(change);
      if (isDead) afterlife.answers.push(answer);
      await halt('after the record');
      return answer;
    },
  };
  const runner = new JobRunner({
    store: watched,
    runtime,
    tasks,
    executor,
    stepTimeoutMs: 600_000,
    notify: () => undefined,
  });
  await runner.recover();

  return {
    store,
    runner,
    crashes,
    /** Goes on until it gets to that place once it has taken up the job; resolves when it is there. */
    haltAt: (next: Place) =>
      new Promise<'halted'>((resolve) => {
        place = next;
        isTakingUp = true;
        onHalted = () => resolve('halted');
      }),
    meet: (next: Trouble) => void (trouble = next),
    /** Stays where it halted. */
    die: () => void (isDead = true),
    /** As if it had only been very slow; answers what it has done since. */
    async awake() {
      // An empty change: by then it knows what has happened meanwhile, or has done what it was about to do.
      await store.update(() => undefined);
      wake?.();
      wake = undefined;
      for (let turn = 0; turn < 3; turn += 1) await store.update(() => undefined);
      isDead = false;
      return { acts: afterlife.acts, answers: afterlife.answers.splice(0) };
    },
    async close() {
      wake?.();
      await tasks.stop();
      await store.close();
    },
  };
}
