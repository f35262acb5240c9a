// The resources of the fake API server, and the discovery documents that list them.

export type Resource = {
  group: string;
  versions: string[];
  name: string;
  kind: string;
  isNamespaced: boolean;
  shortNames?: string[];
  hasStatus?: boolean;
  /** Whether the object has a generation, which counts changes of its spec. */
  hasGeneration?: boolean;
};

const resource = (
  group: string,
  name: string,
  kind: string,
  shortNames: string[] = [],
  rest: Partial<Resource> = {},
): Resource => ({ group, versions: ['v1'], name, kind, isNamespaced: true, shortNames, ...rest });

const workload = { hasStatus: true, hasGeneration: true };

export const resources: Resource[] = [
  resource('', 'namespaces', 'Namespace', ['ns'], { isNamespaced: false, hasStatus: true }),
  resource('', 'nodes', 'Node', ['no'], { isNamespaced: false, hasStatus: true }),
  resource('', 'pods', 'Pod', ['po'], { hasStatus: true }),
  resource('', 'services', 'Service', ['svc'], { hasStatus: true }),
  resource('', 'configmaps', 'ConfigMap', ['cm']),
  resource('', 'secrets', 'Secret'),
  resource('', 'serviceaccounts', 'ServiceAccount', ['sa']),
  resource('', 'persistentvolumeclaims', 'PersistentVolumeClaim', ['pvc'], { hasStatus: true }),
  resource('', 'resourcequotas', 'ResourceQuota', ['quota'], { hasStatus: true }),
  resource('', 'events', 'Event', ['ev']),
  resource('apps', 'deployments', 'Deployment', ['deploy'], workload),
  resource('apps', 'statefulsets', 'StatefulSet', ['sts'], workload),
  resource('apps', 'daemonsets', 'DaemonSet', ['ds'], workload),
  resource('apps', 'replicasets', 'ReplicaSet', ['rs'], workload),
  resource('apps', 'controllerrevisions', 'ControllerRevision'),
  resource('batch', 'cronjobs', 'CronJob', ['cj'], workload),
  resource('batch', 'jobs', 'Job', [], workload),
  resource('coordination.k8s.io', 'leases', 'Lease'),
  resource('rbac.authorization.k8s.io', 'roles', 'Role'),
  resource('rbac.authorization.k8s.io', 'rolebindings', 'RoleBinding'),
  resource('rbac.authorization.k8s.io', 'clusterroles', 'ClusterRole', [], { isNamespaced: false }),
  resource('rbac.authorization.k8s.io', 'clusterrolebindings', 'ClusterRoleBinding', [], {
    isNamespaced: false,
  }),
  resource('policy', 'poddisruptionbudgets', 'PodDisruptionBudget', ['pdb'], {
    ...workload,
    versions: ['v1', 'v1beta1'],
  }),
  resource('networking.k8s.io', 'networkpolicies', 'NetworkPolicy', ['netpol'], { hasGeneration: true }),
];

export function resourceOf(name: string, group?: string): Resource {
  const found = resources.find((one) => one.name === name && (group === undefined || one.group === group));
  if (!found) throw new Error(`no resource ${name}`);
  return found;
}

/** The name in error messages: `deployments.apps`. */
export const titleOf = ({ name, group }: Resource): string => (group === '' ? name : `${name}.${group}`);

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

const groupVersionOf = (group: string, version: string) => (group === '' ? version : `${group}/${version}`);

function listResources(group: string, version: string) {
  const listed = resources
    .filter((one) => one.group === group && one.versions.includes(version))
    .flatMap(({ name, kind, isNamespaced, shortNames, hasStatus }) => [
      {
        name,
        singularName: kind.toLowerCase(),
        namespaced: isNamespaced,
        kind,
        verbs,
        shortNames,
        ...(group === 'apps' && hasStatus === true ? { categories: ['all'] } : {}),
      },
      ...(hasStatus === true
        ? [
            {
              name: `${name}/status`,
              singularName: '',
              namespaced: isNamespaced,
              kind,
              verbs: ['get', 'patch', 'update'],
            },
          ]
        : []),
    ]);
  const reviews = ['SelfSubjectAccessReview', 'SelfSubjectRulesReview'].map((kind) => ({
    name: `${kind.toLowerCase()}s`,
    singularName: '',
    namespaced: false,
    kind,
    verbs: ['create'],
  }));
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: groupVersionOf(group, version),
    resources: group === 'authorization.k8s.io' ? reviews : listed,
  };
}

const versionsByGroup = new Map<string, string[]>([['authorization.k8s.io', ['v1']]]);
for (const { group, versions } of resources) {
  if (group !== '' && (versionsByGroup.get(group)?.length ?? 0) < versions.length)
    versionsByGroup.set(group, versions);
}

function groupDocument(name: string, versions: string[]) {
  const listed = versions.map((version) => ({ groupVersion: groupVersionOf(name, version), version }));
  return { name, versions: listed, preferredVersion: listed[0] };
}

/** Below these paths a 404 has a Status object as its body; elsewhere it is plain text. */
export const isKnownGroup = (path: string): boolean =>
  path.startsWith('/api/v1/') || versionsByGroup.has(/^\/apis\/([^/]+)\/v/.exec(path)?.[1] ?? '');

/** The discovery document at a path, if there is one. */
export function discover(path: string): object | undefined {
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') {
    const groups = [...versionsByGroup].map(([name, versions]) => groupDocument(name, versions));
    return { kind: 'APIGroupList', apiVersion: 'v1', groups };
  }
  if (path === '/api/v1') return listResources('', 'v1');
  const [, group = '', version] = /^\/apis\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  const versions = versionsByGroup.get(group);
  if (!versions) return undefined;
  if (version === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...groupDocument(group, versions) };
  return versions.includes(version) ? listResources(group, version) : undefined;
}

export const serverVersion = {
  major: '1',
  minor: '30',
  gitVersion: 'v1.30.0-fake',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '2024-04-17T17:36:05Z',
  goVersion: 'go1.22.2',
  compiler: 'gc',
  platform: 'linux/amd64',
};
