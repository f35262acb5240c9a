// What a request to the fake API server asks for: its place, its verb, and whether its sender may.
import { isAllowed } from './authorizer.ts';
import { type Fields, isFields } from './objects.ts';
import type { Place } from './registry.ts';
import { resources } from './resources.ts';
import { forbidden } from './status-error.ts';
import type { Storage } from './storage.ts';

const pathForm =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>v[^/]+)(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+))?(?:\/(?<subresource>[^/]+))?$/;

/** A namespace's own path looks like that of something in it. */
const namespaceForm =
  /^\/api\/(?<version>v1)\/(?<plural>namespaces)(?:\/(?<name>[^/]+))?(?:\/(?<subresource>status))?$/;

export function parsePath(path: string): Place | undefined {
  const parts = (namespaceForm.exec(path) ?? pathForm.exec(path))?.groups;
  if (!parts) return undefined;
  const { group = '', version = '', plural } = parts;
  const resource = resources.find(
    (one) => one.name === plural && one.group === group && one.versions.includes(version),
  );
  if (!resource) return undefined;
  const place: Place = { resource, version };
  for (const field of ['namespace', 'name', 'subresource'] as const) {
    if (parts[field] !== undefined) place[field] = decodeURIComponent(parts[field]);
  }
  if (place.subresource !== undefined && !(place.subresource === 'status' && resource.hasStatus)) {
    return undefined;
  }
  return place;
}

const verbs: Record<string, [onOne: string, onMany: string]> = {
  GET: ['get', 'list'],
  POST: ['create', 'create'],
  PUT: ['update', 'update'],
  PATCH: ['patch', 'patch'],
  DELETE: ['delete', 'deletecollection'],
};

export function verbOf(method: string, place: Place, query: URLSearchParams): string {
  const [onOne = '', onMany = ''] = verbs[method] ?? [];
  if (method === 'GET' && query.get('watch') !== null && query.get('watch') !== 'false') return 'watch';
  return place.name === undefined ? onMany : onOne;
}

/** Throws if the user may not. */
export function authorize(storage: Storage, user: string | undefined, verb: string, place: Place): void {
  const { name, subresource, resource } = place;
  // A namespace lies in itself.
  const namespace = resource.name === 'namespaces' ? name : place.namespace;
  const asked = subresource === undefined ? resource.name : `${resource.name}/${subresource}`;
  const wish = {
    verb,
    group: resource.group,
    resource: asked,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
  if (isAllowed(storage, user, wish)) return;
  const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  throw forbidden(
    ...([resource, name ?? ''] as const),
    `User "${user ?? ''}" cannot ${verb} resource "${asked}" in API group "${resource.group}" ${where}`,
  );
}

/** The answer to somebody who asks what they may do. */
export function reviewAccess(storage: Storage, user: string | undefined, review: unknown): object {
  const given = isFields(review) ? review : {};
  const spec = isFields(given.spec) ? given.spec : {};
  const wish = isFields(spec.resourceAttributes) ? spec.resourceAttributes : undefined;
  const text = (field: string) => ((wish as Fields)[field] as string | undefined) ?? '';
  const allowed =
    wish === undefined ||
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
