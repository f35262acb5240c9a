// Defaults and validation of objects in the fake API server, like those of the real one.
import {
  type Container,
  type Fields,
  type JobSpec,
  type PodSpec,
  type WorkloadSpec,
  copy,
  isFields,
  textOf,
} from './objects.ts';
import type { Resource } from './resources.ts';
import { matches } from './selectors.ts';
import { type StatusError, invalid } from './status-error.ts';

/** Sets missing fields. */
function fill(target: Fields, defaults: Fields): void {
  for (const [name, value] of Object.entries(defaults)) {
    if (target[name] === undefined) target[name] = copy(value);
    else if (isFields(value) && isFields(target[name])) fill(target[name], value);
  }
}

const rolling = (rollingUpdate: Fields) => ({ type: 'RollingUpdate', rollingUpdate });

/** The name of the strategy field, its defaults, and the defaults of other fields. */
const defaultsOfWorkloads: Record<string, [string, Fields, Fields]> = {
  deployments: [
    'strategy',
    rolling({ maxSurge: '25%', maxUnavailable: '25%' }),
    { replicas: 1, progressDeadlineSeconds: 600, revisionHistoryLimit: 10 },
  ],
  statefulsets: [
    'updateStrategy',
    rolling({ partition: 0 }),
    { replicas: 1, podManagementPolicy: 'OrderedReady', revisionHistoryLimit: 10 },
  ],
  daemonsets: ['updateStrategy', rolling({ maxUnavailable: 1, maxSurge: 0 }), { revisionHistoryLimit: 10 }],
  replicasets: ['', {}, { replicas: 1 }],
};

function fillPodSpec(spec: Fields): void {
  fill(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
  });
  for (const container of [...listOf(spec.initContainers), ...listOf(spec.containers)]) {
    const image = typeof container.image === 'string' ? container.image : '';
    const isLatest = !/[:@][^/]*$/.test(image) || image.endsWith(':latest');
    fill(container, {
      imagePullPolicy: isLatest ? 'Always' : 'IfNotPresent',
      resources: {},
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
    });
    for (const port of listOf(container.ports)) fill(port, { protocol: 'TCP' });
  }
}

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : []);

function fillJobSpec(spec: Fields): void {
  fill(spec, { parallelism: 1, completions: 1, backoffLimit: 6, suspend: false });
  if (isFields(spec.template) && isFields(spec.template.spec)) fillPodSpec(spec.template.spec);
}

export function fillDefaults(resource: Resource, object: Fields): void {
  const spec = object.spec;
  if (!isFields(spec)) return;
  if (resource.name === 'jobs') fillJobSpec(spec);
  if (resource.name === 'cronjobs') {
    fill(spec, { suspend: false, concurrencyPolicy: 'Allow', successfulJobsHistoryLimit: 3 });
    if (isFields(spec.jobTemplate) && isFields(spec.jobTemplate.spec)) {
      const { template } = spec.jobTemplate.spec;
      if (isFields(template) && isFields(template.spec)) fillPodSpec(template.spec);
    }
  }
  if (resource.name === 'pods') fillPodSpec(spec);
  const [field, strategy, rest] = defaultsOfWorkloads[resource.name] ?? [];
  if (field === undefined || strategy === undefined || rest === undefined) return;
  if (field !== '') {
    const given = isFields(spec[field]) ? spec[field] : {};
    spec[field] = given;
    fill(given, { type: strategy.type });
    if (given.type === 'RollingUpdate') fill(given, strategy);
  }
  fill(spec, rest);
  if (isFields(spec.template) && isFields(spec.template.spec)) fillPodSpec(spec.template.spec);
}

const microTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;

/** Why the object cannot be parsed as its kind. */
export function findMalformed(resource: Resource, object: Fields): string | undefined {
  if (resource.name !== 'leases' || !isFields(object.spec)) return undefined;
  for (const field of ['renewTime', 'acquireTime']) {
    const value = object.spec[field];
    if (value === undefined || (typeof value === 'string' && microTime.test(value))) continue;
    const text = JSON.stringify(value);
    return `parsing time ${text} as "2006-01-02T15:04:05.000000Z07:00": cannot parse ${text} as ".000000"`;
  }
  return undefined;
}

const nameForm = /^[a-z0-9]([-a-z0-9.:]*[a-z0-9])?$/;

export function validate(resource: Resource, name: string, object: Fields): void {
  const refuse = (field: string, why: string): StatusError => invalid(resource, name, field, why);
  const hasFreeName = resource.group === 'rbac.authorization.k8s.io';
  if (!hasFreeName && (!nameForm.test(name) || name.length > 253)) {
    throw refuse(
      'metadata.name',
      `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of …`,
    );
  }
  checkLabels(object, refuse);
  if (resource.name === 'leases' && isFields(object.spec) && object.spec.leaseDurationSeconds === 0) {
    throw refuse('spec.leaseDurationSeconds', 'Invalid value: 0: must be greater than 0');
  }
  if (resource.name === 'pods') return checkPodSpec('spec', object.spec as PodSpec | undefined, refuse);
  if (resource.name === 'jobs') return checkJob(name, 63, 'spec', object.spec as JobSpec | undefined, refuse);
  if (resource.name === 'cronjobs') {
    const cron = (object.spec ?? {}) as { jobTemplate?: { spec?: JobSpec } };
    return checkJob(name, 52, 'spec.jobTemplate.spec', cron.jobTemplate?.spec, refuse);
  }
  if (defaultsOfWorkloads[resource.name] === undefined) return;
  const spec = object.spec as Partial<WorkloadSpec> | undefined;
  if (spec?.selector === undefined) throw refuse('spec.selector', 'Required value');
  checkPodSpec('spec.template.spec', spec.template?.spec, refuse);
  const labels = spec.template.metadata?.labels;
  if (!matches(spec.selector, labels)) {
    throw refuse(
      'spec.template.metadata.labels',
      `Invalid value: ${textOf(labels ?? {})}: \`selector\` does not match template \`labels\``,
    );
  }
}

/** The name of a Job becomes a label of its pods; a CronJob adds eleven characters to its own name. */
function checkJob(name: string, most: number, at: string, spec: JobSpec | undefined, refuse: Refuse): void {
  if (name.length > most) {
    throw refuse('metadata.name', `Invalid value: "${name}": must be no more than ${most} characters`);
  }
  const podSpec = spec?.template.spec;
  checkPodSpec(`${at}.template.spec`, podSpec, refuse);
  const { restartPolicy = '' } = podSpec;
  if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never') {
    throw refuse(`${at}.template.spec.restartPolicy`, `Required value: valid values: "OnFailure", "Never"`);
  }
}

const labelForm = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;

function checkLabels({ metadata }: Fields, refuse: Refuse): void {
  const labels = isFields(metadata) && isFields(metadata.labels) ? metadata.labels : {};
  for (const value of Object.values(labels)) {
    if (typeof value === 'string' && labelForm.test(value)) continue;
    const why = 'a valid label must be an empty string or consist of alphanumeric characters, …';
    throw refuse('metadata.labels', `Invalid value: ${textOf(value)}: ${why}`);
  }
}

type Refuse = (field: string, why: string) => StatusError;

function checkPodSpec(at: string, spec: PodSpec | undefined, refuse: Refuse): asserts spec is PodSpec {
  if (!Array.isArray(spec?.containers) || spec.containers.length === 0) {
    throw refuse(`${at}.containers`, 'Required value');
  }
  const names = new Set<string>();
  const check = (list: string) => (container: Partial<Container>, index: number) => {
    const field = `${at}.${list}[${index}]`;
    if (container.name === undefined) throw refuse(`${field}.name`, 'Required value');
    if ((container.image ?? '') === '') throw refuse(`${field}.image`, 'Required value');
    if (names.has(container.name)) throw refuse(`${field}.name`, `Duplicate value: "${container.name}"`);
    names.add(container.name);
  };
  spec.containers.forEach(check('containers'));
  spec.initContainers?.forEach(check('initContainers'));
}
