// Parses requests to the fake API server: the target and the verb; and checks permissions.
import { isAllowed, rulesOf } from './authorizer.ts';
import { type Fields, isFields } from './objects.ts';
import type { Target } from './registry.ts';
import { resources } from './resources.ts';
import { forbidden } from './status-error.ts';
import type { Storage } from './storage.ts';

const pathForm =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>v[^/]+)(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+))?(?:\/(?<subresource>[^/]+))?$/;

/** The path of a namespace itself looks like the path of an object in it. */
const namespaceForm =
  /^\/api\/(?<version>v1)\/(?<plural>namespaces)(?:\/(?<name>[^/]+))?(?:\/(?<subresource>status))?$/;

export function parsePath(path: string): Target | undefined {
  const parts = (namespaceForm.exec(path) ?? pathForm.exec(path))?.groups;
  if (!parts) return undefined;
  const { group = '', version = '', plural } = parts;
  const resource = resources.find(
    (one) => one.name === plural && one.group === group && one.versions.includes(version),
  );
  if (!resource) return undefined;
  const target: Target = { resource, version };
  for (const field of ['namespace', 'name', 'subresource'] as const) {
    if (parts[field] !== undefined) target[field] = decodeURIComponent(parts[field]);
  }
  if (target.subresource !== undefined && !(target.subresource === 'status' && resource.hasStatus)) {
    return undefined;
  }
  return target;
}

const verbs: Record<string, [onOne: string, onMany: string]> = {
  GET: ['get', 'list'],
  POST: ['create', 'create'],
  PUT: ['update', 'update'],
  PATCH: ['patch', 'patch'],
  DELETE: ['delete', 'deletecollection'],
};

export function verbOf(method: string, target: Target, query: URLSearchParams): string {
  const [onOne = '', onMany = ''] = verbs[method] ?? [];
  if (method === 'GET' && query.get('watch') !== null && query.get('watch') !== 'false') return 'watch';
  return target.name === undefined ? onMany : onOne;
}

/** Throws if the user lacks the permission. */
export function authorize(storage: Storage, user: string | undefined, verb: string, target: Target): void {
  const { name, subresource, resource } = target;
  // For permissions a namespace object belongs to itself.
  const namespace = resource.name === 'namespaces' ? name : target.namespace;
  const resourceName = subresource === undefined ? resource.name : `${resource.name}/${subresource}`;
  const access = {
    verb,
    group: resource.group,
    resource: resourceName,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
  if (isAllowed(storage, user, access)) return;
  const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  throw forbidden(
    resource,
    name ?? '',
    `User "${user ?? ''}" cannot ${verb} resource "${resourceName}" in API group "${resource.group}" ${where}`,
  );
}

/** The response to a SelfSubjectAccessReview. */
export function reviewAccess(storage: Storage, user: string | undefined, review: unknown): object {
  const given = isFields(review) ? review : {};
  const spec = isFields(given.spec) ? given.spec : {};
  const access = isFields(spec.resourceAttributes) ? spec.resourceAttributes : undefined;
  const text = (field: string) => ((access as Fields)[field] as string | undefined) ?? '';
  const allowed =
    access === undefined ||
    isAllowed(storage, user, {
      verb: text('verb'),
      group: text('group'),
      resource: text('subresource') === '' ? text('resource') : `${text('resource')}/${text('subresource')}`,
      ...(text('namespace') === '' ? {} : { namespace: text('namespace') }),
      ...(text('name') === '' ? {} : { name: text('name') }),
    });
  return {
    ...given,
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    status: { allowed },
  };
}

/** The response to a SelfSubjectRulesReview. */
export function reviewRules(storage: Storage, user: string | undefined, review: unknown): object {
  const given = isFields(review) ? review : {};
  const spec = isFields(given.spec) ? given.spec : {};
  const resourceRules = rulesOf(storage, user, (spec.namespace as string | undefined) ?? '');
  return {
    ...given,
    kind: 'SelfSubjectRulesReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    status: { resourceRules, nonResourceRules: [], incomplete: false },
  };
}
