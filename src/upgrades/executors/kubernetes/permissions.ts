// The permissions that Steward needs in a namespace. A test compares the Role in deploy/ with these lists.

/** The only Lease that Steward uses. */
export const leaseName = 'upgrade-lock';

export type Permission = {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Absent: all objects of the resource. */
  readonly name?: string;
};

/** A rule of a Role, as the API server lists it. */
export type Rule = {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
};

const permissions = (group: string, resource: string, ...verbs: string[]): Permission[] =>
  verbs.map((verb) => ({ verb, group, resource }));

const workloadResources = ['deployments', 'statefulsets', 'daemonsets'];

export const neededPermissions: readonly Permission[] = [
  ...workloadResources.flatMap((resource) => permissions('apps', resource, 'get', 'list', 'patch')),
  // The executor deletes only pods that block the rollout of a StatefulSet.
  ...permissions('', 'pods', 'list', 'delete'),
  // Kubernetes does not limit `create` to a name.
  ...permissions('coordination.k8s.io', 'leases', 'create'),
  ...permissions('coordination.k8s.io', 'leases', 'get', 'update').map((one) => ({
    ...one,
    name: leaseName,
  })),
];

/** Needed with STEP_TEMPLATES=on. */
export const templatePermissions: readonly Permission[] = [
  ...permissions('batch', 'cronjobs', 'list'),
  ...permissions('batch', 'jobs', 'create', 'get', 'list', 'delete'),
];

/** Without these, Steward writes no Events. */
export const eventPermissions: readonly Permission[] = permissions('', 'events', 'create');

export function isGranted({ verb, group, resource, name }: Permission, rules: readonly Rule[]): boolean {
  const has = (values: readonly string[] = [], value: string) =>
    values.includes(value) || values.includes('*');
  const hasName = (names: readonly string[] = []) =>
    names.length === 0 || (name !== undefined && names.includes(name));
  return rules.some(
    ({ verbs, apiGroups, resources, resourceNames }) =>
      has(verbs, verb) && has(apiGroups, group) && has(resources, resource) && hasName(resourceNames),
  );
}

export function formatPermissions(missing: readonly Permission[]): string {
  const verbs = new Map<string, string[]>();
  for (const { verb, group, resource, name } of missing) {
    const title = group === '' ? resource : `${resource}.${group}`;
    const object = name === undefined ? title : `${title}/${name}`;
    verbs.set(object, [...(verbs.get(object) ?? []), verb]);
  }
  return [...verbs].map(([name, list]) => `${list.join(', ')} ${name}`).join('; ');
}
