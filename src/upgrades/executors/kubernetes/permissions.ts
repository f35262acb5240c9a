// The permissions that Steward needs in a namespace. A test compares the Role in deploy/ with this list.

export type Permission = { readonly verb: string; readonly group: string; readonly resource: string };

const permissions = (group: string, resource: string, ...verbs: string[]): Permission[] =>
  verbs.map((verb) => ({ verb, group, resource }));

export const neededPermissions: readonly Permission[] = [
  ...['deployments', 'statefulsets', 'daemonsets'].flatMap((resource) =>
    permissions('apps', resource, 'get', 'list', 'patch'),
  ),
  // The executor deletes only pods that block the rollout of a StatefulSet.
  ...permissions('', 'pods', 'list', 'delete'),
  ...permissions('coordination.k8s.io', 'leases', 'create', 'get', 'update'),
];

/** Needed with STEP_TEMPLATES=on. */
export const templatePermissions: readonly Permission[] = [
  ...permissions('batch', 'cronjobs', 'list'),
  ...permissions('batch', 'jobs', 'create', 'get', 'list', 'delete'),
];

/** Optional: without it, Steward does not check quotas. */
export const readQuotas: Permission = { verb: 'list', group: '', resource: 'resourcequotas' };

export function formatPermissions(missing: readonly Permission[]): string {
  const verbs = new Map<string, string[]>();
  for (const { verb, group, resource } of missing) {
    const name = group === '' ? resource : `${resource}.${group}`;
    verbs.set(name, [...(verbs.get(name) ?? []), verb]);
  }
  return [...verbs].map(([name, list]) => `${list.join(', ')} ${name}`).join('; ');
}
