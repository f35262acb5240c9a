// Recordings of jobs: how long each step of a job took.
import { readFileSync } from 'node:fs';
import type { Plan, Step } from '../../src/upgrades/planning/plan.ts';
import type { StepId } from '../../src/upgrades/executors/steps.ts';

export type RecordedStep = { readonly id: StepId; readonly isSkipped: boolean; readonly ms: number };

export function readRecording(name: string): RecordedStep[] {
  const file = new URL(`recorded/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as RecordedStep[];
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
  return { steps, workloads: 0, parallelism: 1, hops: [] };
}
