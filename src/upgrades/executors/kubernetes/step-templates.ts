// Finds the step templates of a namespace: suspended CronJobs with the label `steward/step`.
import { groupBy } from '../../../lib/collections.ts';
import { formatList } from '../../../lib/format.ts';
import { truncate } from '../../../lib/text.ts';
import type { Performers } from '../../planning/performers.ts';
import { type TemplateStepId, isTemplateStepId, templateStepIds } from '../../planning/step-ids.ts';

export const stepLabel = 'steward/step';

/** Plain JSON: the types of the library would drop fields that are newer than the library. */
export type CronJobObject = {
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: {
    readonly suspend?: boolean;
    readonly jobTemplate?: {
      readonly metadata?: {
        readonly labels?: Readonly<Record<string, string>>;
        readonly annotations?: Readonly<Record<string, string>>;
      };
      readonly spec?: JobSpec;
    };
  };
};

type JobSpec = {
  readonly activeDeadlineSeconds?: number;
  readonly ttlSecondsAfterFinished?: number;
  readonly template?: { readonly spec?: PodSpec };
};

type PodSpec = {
  readonly containers?: readonly ContainerSpec[];
  readonly initContainers?: readonly ContainerSpec[];
};

export type ContainerSpec = { readonly env?: readonly { readonly name: string }[] };

export type FoundTemplates = {
  readonly performers: Performers;
  readonly problems: readonly string[];
  readonly notices: readonly string[];
};

export const noTemplates: FoundTemplates = {
  performers: { isSimulated: false, templates: new Map() },
  problems: [],
  notices: [],
};

export function selectTemplates(found: readonly CronJobObject[]): FoundTemplates {
  const templates = new Map<TemplateStepId, string>();
  const problems: string[] = [];
  const notices: string[] = [];
  for (const [step = '', cronJobs] of groupBy(found, ({ metadata }) => metadata?.labels?.[stepLabel])) {
    const names = cronJobs.map(({ metadata }) => metadata?.name ?? '').sort();
    if (!isTemplateStepId(step)) {
      notices.push(
        `cronjob/${formatList(names)}: the label ${stepLabel} names no step: ${truncate(step)}. ` +
          `Allowed are ${templateStepIds.join(', ')}.`,
      );
      continue;
    }
    templates.set(step, names[0] ?? '');
    if (names.length > 1)
      problems.push(`the step ${step} has ${names.length} step templates: ${formatList(names)}.`);
    for (const { metadata, spec } of cronJobs)
      if (spec?.suspend !== true)
        problems.push(
          `cronjob/${metadata?.name ?? ''}: is the step template of ${step}, but is not suspended (spec.suspend).`,
        );
  }
  return { performers: { isSimulated: false, templates }, problems, notices };
}
