// The executor of a controlled server: failure rules delay steps and let them fail.
import type { Runtime } from '../lib/runtime.ts';
import type { Executor, StepContext } from '../upgrades/executors/executor.ts';
import type { FailureRules, Match } from './rule.ts';

type FailingExecutorOptions = {
  readonly executor: Executor;
  readonly rules: FailureRules;
  /** The controlled clock: steps take its time. */
  readonly runtime: Pick<Runtime, 'sleep'>;
};

/** Without a step, a container means its update. */
type Part = { readonly step: string; readonly container?: string };

export function createFailingExecutor({ executor, rules, runtime }: FailingExecutorOptions): Executor {
  async function failByRule(part: Part, { signal }: StepContext): Promise<void> {
    const respond = rules.take((match) => matchesPart(match, part));
    if (!respond) return;
    if (respond.delayMs !== undefined) await runtime.sleep(respond.delayMs, signal);
    const { error, status, disconnect } = respond;
    if (error === undefined && status === undefined && disconnect !== true) return;
    const what = part.container === undefined ? '' : ` of ${part.container}`;
    throw new Error(`the step ${part.step}${what} fails by a failure rule${error ? ` (${error})` : ''}.`);
  }

  return {
    ...executor,
    async perform(step, context) {
      await failByRule({ step }, context);
      return executor.perform(step, context);
    },
    async runTemplate(run, context) {
      await failByRule({ step: run.step }, context);
      return executor.runTemplate(run, context);
    },
    async apply(workload, context) {
      await failByRule({ step: 'update', container: workload.name }, context);
      return executor.apply(workload, context);
    },
    async verify(workload, context) {
      await failByRule({ step: 'verify', container: workload.name }, context);
      return executor.verify(workload, context);
    },
    async rollback(workload, context) {
      await failByRule({ step: 'revert', container: workload.name }, context);
      return executor.rollback(workload, context);
    },
    async check(workloads, which, context, repaired) {
      await failByRule({ step: 'final-check' }, context);
      return executor.check(workloads, which, context, repaired);
    },
  };
}

function matchesPart({ container, step }: Match, part: Part): boolean {
  if (container === undefined && step === undefined) return false;
  if (container !== undefined && container !== part.container?.toUpperCase()) return false;
  return part.step === (step ?? 'update');
}
