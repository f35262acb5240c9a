// Plans that version 0.1 has stored: their steps have no ids, and a failed job must still be able to go on.
import { expect, it } from 'vitest';
import type { StoredPlan } from '../../src/upgrades/job-table.ts';
import { type Plan, planRollback, planUpgrade } from '../../src/upgrades/plan.ts';
import { completePlan } from '../../src/upgrades/stored-plan.ts';

const noPerformers = { isSimulated: false, templates: new Map() };
const workload = {
  name: 'deployment/a',
  component: 'A',
  parts: [{ container: 'a', image: 'a:2', formerImage: 'a:1' }],
};

/** The fields of version 0.1, which had no final check. */
const asStored = ({ steps, workloads }: Plan) =>
  ({
    jobId: 'job',
    workloads,
    steps: steps
      .filter(({ id }) => id !== 'final-check')
      .map(({ name, action, workload: moved, codes, subject, counts }) => ({
        name,
        action: action === 'run-template' ? 'perform' : action,
        workload: moved,
        codes,
        subject,
        counts,
      })),
  }) as unknown as StoredPlan;

it.each([
  ['a release', planUpgrade([{ isRelease: true, workloads: [[workload], [workload]] }], 1, noPerformers)],
  ['a patch', planUpgrade([{ isRelease: false, workloads: [[workload]] }], 1, noPerformers)],
  ['a rollback', planRollback([workload], noPerformers)],
])(
  'the steps of %s get the ids of the interface, and those without a template are skipped',
  (_what, plan) => {
    const completed = completePlan(asStored(plan));
    const summary = (step: Plan['steps'][number]) => [step.seqNum, step.id, step.performedBy === 'nobody'];
    expect(completed.steps.map(summary)).toEqual(plan.steps.slice(0, -1).map(summary));
    expect(completed.steps.filter(({ isSkipped }) => isSkipped).every(({ id }) => id !== 'launch')).toBe(
      true,
    );
  },
);

it('a plan with ids stays as it is', () => {
  const plan = {
    ...planUpgrade([{ isRelease: false, workloads: [[workload]] }], 1, noPerformers),
    jobId: 'job',
  } as unknown as StoredPlan;
  expect(completePlan(plan)).toEqual(plan);
});
