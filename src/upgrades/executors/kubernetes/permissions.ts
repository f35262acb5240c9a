// What Steward must be allowed to do in a namespace. The Role in deploy/ is held to this by a test.

export type Permission = { readonly verb: string; readonly group: string; readonly resource: string };

const rights = (group: string, resource: string, ...verbs: string[]): Permission[] =>
  verbs.map((verb) => ({ verb, group, resource }));

export const neededPermissions: readonly Permission[] = [
  ...['deployments', 'statefulsets', 'daemonsets'].flatMap((resource) =>
    rights('apps', resource, 'get', 'list', 'patch'),
  ),
  // Deleted is only a pod of a StatefulSet that keeps it from being put back.
  ...rights('', 'pods', 'list', 'delete'),
  ...rights('coordination.k8s.io', 'leases', 'create', 'get', 'update'),
];

/** Without it quotas are not looked at. */
export const readQuotas: Permission = { verb: 'list', group: '', resource: 'resourcequotas' };

/** In one sentence, grouped by what is not allowed. */
export function formatMissing(missing: readonly Permission[]): string {
  const verbs = new Map<string, string[]>();
  for (const { verb, group, resource } of missing) {
    const name = group === '' ? resource : `${resource}.${group}`;
    verbs.set(name, [...(verbs.get(name) ?? []), verb]);
  }
  return [...verbs].map(([name, list]) => `${list.join(', ')} ${name}`).join('; ');
}
