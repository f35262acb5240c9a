// Step templates (suspended CronJobs with the label `steward/step`), and the Job that performs a step: its object, made
// from the template, and what its state and its pods say about the result.
import { createHash } from 'node:crypto';
import { groupBy } from '../../../lib/collections.ts';
import { formatList } from '../../../lib/format.ts';
import { isJsonObject, parseJson } from '../../../lib/json.ts';
import { isXmlText, truncate } from '../../../lib/text.ts';
import { type TemplateStepId, isTemplateStepId, templateStepIds } from '../steps.ts';
import { type Workload, templatePath } from '../workloads.ts';
import type { TemplateRun } from '../executor.ts';
import type { FoundTemplates } from '../inventory/found.ts';
import type { ClusterPod } from './workload.ts';

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

type ContainerSpec = {
  readonly name?: string;
  readonly image?: string;
  readonly env?: readonly { readonly name: string }[];
};

export const noTemplates: FoundTemplates = {
  performers: { isSimulated: false, templates: new Map() },
  workloads: [],
  problems: [],
  notices: [],
};

export function selectTemplates(found: readonly CronJobObject[]): FoundTemplates {
  const templates = new Map<TemplateStepId, string>();
  const contents = new Map<TemplateStepId, string>();
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
    contents.set(step, hashOf(cronJobs.map(({ spec }) => spec?.jobTemplate)));
    if (names.length > 1)
      problems.push(`the step ${step} has ${names.length} step templates: ${formatList(names)}.`);
    for (const { metadata, spec } of cronJobs)
      if (spec?.suspend !== true)
        problems.push(
          `cronjob/${metadata?.name ?? ''}: is the step template of ${step}, but is not suspended (spec.suspend).`,
        );
  }
  return {
    performers: { isSimulated: false, templates, contents },
    workloads: found.map(toWorkload),
    problems,
    notices,
  };
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

function toWorkload({ metadata, spec }: CronJobObject): Workload {
  const { containers = [], initContainers = [] } = spec?.jobTemplate?.spec?.template?.spec ?? {};
  const parts = [...initContainers, ...containers].map(({ name = '', image = '' }) => ({
    container: name,
    image,
    formerImage: image,
  }));
  return { name: templatePath(metadata?.name ?? ''), component: '', parts };
}

export const jobLabel = 'steward/job';

const maxLines = 5;
const maxLine = 500;

export type StepJob = {
  readonly name: string;
  readonly uid: string;
  readonly upgradeJobId: string | undefined;
  readonly state: 'running' | 'complete' | 'failed';
  readonly isSuspended: boolean;
  readonly isTerminating: boolean;
  /** Only a failed Job has one. */
  readonly reason: string | undefined;
};

export type JobObject = {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly suspend?: boolean };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
};

/** The API server creates one Job of a name, so all processes that try this attempt share it. */
export function buildStepJob(
  { spec }: CronJobObject,
  { step, jobName, from, to }: TemplateRun,
  upgradeJobId: string,
  maxSeconds: number,
): object {
  const { metadata, spec: jobSpec = {} } = spec?.jobTemplate ?? {};
  const { ttlSecondsAfterFinished: _ttl, activeDeadlineSeconds = maxSeconds, ...others } = jobSpec;
  const variables = {
    STEWARD_JOB_ID: upgradeJobId,
    STEWARD_STEP: step,
    STEWARD_FROM_VERSION: from,
    STEWARD_TO_VERSION: to,
  };
  const addVariables = (container: ContainerSpec) => withVariables(container, variables);
  const podSpec = jobSpec.template?.spec ?? {};
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: jobName,
      labels: { ...metadata?.labels, [jobLabel]: upgradeJobId, [stepLabel]: step },
      ...(metadata?.annotations && { annotations: metadata.annotations }),
    },
    spec: {
      ...others,
      activeDeadlineSeconds: Math.min(activeDeadlineSeconds, maxSeconds),
      template: {
        ...jobSpec.template,
        spec: {
          ...podSpec,
          ...(podSpec.initContainers && { initContainers: podSpec.initContainers.map(addVariables) }),
          ...(podSpec.containers && { containers: podSpec.containers.map(addVariables) }),
        },
      },
    },
  };
}

/** First in the list, because only later variables can refer to them. */
function withVariables(container: ContainerSpec, variables: Readonly<Record<string, string>>): ContainerSpec {
  const own = Object.entries(variables).map(([name, value]) => ({ name, value }));
  const others = (container.env ?? []).filter(({ name }) => !(name in variables));
  return { ...container, env: [...own, ...others] };
}

export function parseStepJob({ metadata, spec, status }: JobObject): StepJob {
  const find = (type: string) =>
    status?.conditions?.find((one) => one.type === type && one.status === 'True');
  const failed = find('Failed');
  const { reason = 'no reason given', message } = failed ?? {};
  return {
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    upgradeJobId: metadata?.labels?.[jobLabel],
    isSuspended: spec?.suspend === true,
    isTerminating: metadata?.deletionTimestamp !== undefined,
    state: failed ? 'failed' : find('Complete') ? 'complete' : 'running',
    reason: failed && truncate(message === undefined ? reason : `${reason}: ${message}`, maxLine),
  };
}

/** The pods of a Job. Kubernetes sets this label. */
export function podsOfJob(jobName: string): string {
  return `job-name=${jobName}`;
}

export function findTerminationMessage(pods: readonly ClusterPod[]): string | undefined {
  return pods.toSorted((a, b) => a.createdAt - b.createdAt).at(-1)?.terminationMessage;
}

export function formatJobFailure({ name, reason = '' }: StepJob, terminationMessage = ''): string {
  const lines = terminationMessage
    .split(/\r\n|\r|\n/)
    .map((line) => truncate(line.replaceAll(/\p{Cc}/gu, '').trim(), maxLine))
    .filter((line) => line !== '')
    .slice(-maxLines);
  const cause = `the Job ${name} failed (${reason.replaceAll(/\p{Cc}/gu, ' ')})`;
  return lines.length === 0 ? `${cause}.` : `${cause}: ${lines.join(' | ')}`;
}

/** The message as JSON without line breaks, if it is a JSON object. */
export function parseResult(terminationMessage = ''): string | undefined {
  const value = parseJson(terminationMessage);
  const text = isJsonObject(value) ? JSON.stringify(value) : undefined;
  return text !== undefined && isXmlText(text) ? text : undefined;
}
