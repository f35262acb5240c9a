// Recordings of jobs: how long each step of a job took. `record` makes one from a running server; the tests replay
// them.
import { readFileSync, writeFileSync } from 'node:fs';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import type { Plan, Step } from '../../src/upgrades/planning/plan.ts';
import type { StepId } from '../../src/upgrades/planning/step-ids.ts';
import type { TestStore } from '../kit/store.ts';

export type RecordedStep = { readonly id: StepId; readonly isSkipped: boolean; readonly ms: number };

const fileOf = (name: string) => new URL(`recorded/${name}.json`, import.meta.url);

export function readRecording(name: string): RecordedStep[] {
  return JSON.parse(readFileSync(fileOf(name), 'utf8')) as RecordedStep[];
}

/** Follows the newest job of the store. Call `save` when it has ended. */
export function record(store: TestStore, now: () => number) {
  const times: number[] = [];
  let plan: Plan | undefined;
  store.onUpdate(() => {
    const job = store.read(newestJob);
    if (!job) return;
    times[job.next] ??= now();
    if (!plan) void store.jobs.plan(job.id).then((found) => (plan ??= found));
  });
  return {
    save(name: string): void {
      const steps = plan?.steps.map(({ id, isSkipped }, index) => {
        const ms = Math.round(((times[index + 1] ?? 0) - (times[index] ?? 0)) * 10) / 10;
        return `{ "id": "${id}", "isSkipped": ${isSkipped}, "ms": ${ms} }`;
      });
      writeFileSync(fileOf(name), `[\n  ${steps?.join(',\n  ')}\n]\n`);
    },
  };
}

/** A plan with the steps of a recording. */
export function planOf(recorded: readonly RecordedStep[]): Plan {
  const steps = recorded.map(({ id, isSkipped }, seqNum): Step => ({
    seqNum,
    id,
    name: id,
    performedBy: isSkipped ? 'nobody' : 'steward',
    template: null,
    isSkipped,
    action: 'perform',
    workload: null,
    codes: [],
    subject: '',
    counts: null,
  }));
  return { steps, workloads: 0, hops: [] };
}
