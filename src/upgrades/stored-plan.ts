// Completes a stored plan: version 0.1 stored steps without an id, and a job that it left failed can still be resumed.
import type { StoredPlan } from './job-table.ts';
import { type Step, planUpgrade } from './plan.ts';
import { type StepId, isTemplateStepId } from './step-ids.ts';

type OldStep = Pick<Step, 'name' | 'action' | 'workload' | 'codes' | 'subject' | 'counts'>;

export function completePlan(plan: StoredPlan): StoredPlan {
  const steps: readonly (Step | OldStep)[] = plan.steps;
  return { ...plan, steps: steps.map((step, seqNum) => ('id' in step ? step : completeStep(step, seqNum))) };
}

/** Nobody has performed the steps for which there are templates now. */
function completeStep(step: OldStep, seqNum: number): Step {
  const id = findId(step);
  const isSkipped = isTemplateStepId(id);
  const performedBy = isSkipped ? 'nobody' : step.workload ? 'rollout' : 'steward';
  return { ...step, seqNum, id, performedBy, template: null, isSkipped };
}

const noPerformers = { isSimulated: false, templates: new Map() };
const idsOfCodes = new Map<number, StepId>([
  ...planUpgrade([{ isRelease: true, workloads: [] }], 1, noPerformers).steps.flatMap(({ codes, id }) =>
    codes.map((code): [number, StepId] => [code, id]),
  ),
  [2134, 'component-begin'],
  [2132, 'component-end'],
]);

function findId({ action, codes: [code] }: OldStep): StepId {
  if (action === 'apply') return 'update';
  if (action === 'verify') return 'verify';
  if (action === 'rollback') return 'revert';
  return (code !== undefined && idsOfCodes.get(code)) || 'begin';
}
