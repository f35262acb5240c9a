// Who performs the steps of a plan: Steward, the rollouts of workloads, Jobs made from step templates, or a simulation.
import { type TemplateStepId, templateSteps } from './step-ids.ts';

export type PerformedBy = 'steward' | 'rollout' | 'job' | 'nobody' | 'simulation';

export type Performers = {
  readonly isSimulated: boolean;
  /** The names of the templates, by the ids of their steps. */
  readonly templates: ReadonlyMap<TemplateStepId, string>;
};

/** The default has a template for every step, and no hooks. */
export function simulatedPerformers(ids: readonly TemplateStepId[] = templateSteps): Performers {
  return { isSimulated: true, templates: new Map(ids.map((id) => [id, id])) };
}

/** The name of the Job that performs a step, which is unique for each attempt. */
export function nameOfStepJob(jobId: string, seqNum: number, attempt: number): string {
  return `steward-${jobId.slice(0, 8)}-${seqNum}-${attempt}`;
}
