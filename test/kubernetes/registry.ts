// The operations of the fake API server on its storage: create, update, patch and delete, with defaults, validation
// and conflicts.
import { fillDefaults, findMalformed, validate } from './defaults.ts';
import { applyPatch } from './merge.ts';
import {
  type Fields,
  type KubeObject,
  type Metadata,
  type Pod,
  isFields,
  textOf,
  alwaysReported,
  withoutNulls,
} from './objects.ts';
import { checkQuota, withUsage } from './quota.ts';
import { type Resource, resourceOf } from './resources.ts';
import { badRequest, conflict, invalid, notFound, unprocessable } from './status-error.ts';
import type { Storage } from './storage.ts';

/** The object or collection that a request addresses. */
export type Target = {
  resource: Resource;
  version: string;
  namespace?: string;
  name?: string;
  subresource?: string;
};

type Loose = KubeObject & { spec?: Fields; status?: Fields };

const namespaces = resourceOf('namespaces');
const podResource = resourceOf('pods');
const serviceAccounts = resourceOf('serviceaccounts');

const groupVersionOf = ({ resource, version }: Target) =>
  resource.group === '' ? version : `${resource.group}/${version}`;

export type Registry = ReturnType<typeof createRegistry>;

export function createRegistry(storage: Storage) {
  function toResponse(target: Target, object: KubeObject): KubeObject {
    const full = target.resource.name === 'resourcequotas' ? withUsage(storage, object) : object;
    return { ...full, apiVersion: groupVersionOf(target), kind: target.resource.kind };
  }

  function present(target: Target): Loose {
    const { resource, namespace, name = '' } = target;
    const found: Loose | undefined = storage.get(resource, namespace, name);
    if (!found) throw notFound(resource, name);
    return found;
  }

  const exists = ({ resource, namespace, name = '' }: Target) =>
    storage.get(resource, namespace, name) !== undefined;

  function create(target: Target, given: unknown): KubeObject {
    const { resource, namespace } = target;
    const body = read(target, given);
    const { metadata } = body;
    if (namespace !== undefined && !storage.get(namespaces, undefined, namespace)) {
      throw notFound(namespaces, namespace);
    }
    if (metadata.name === undefined && metadata.generateName === undefined) {
      throw invalid(resource, '', 'metadata.name', 'Required value: name or generateName is required');
    }
    const { status: _status, ...rest } = body;
    const { resourceVersion: _version, uid: _uid, ...named } = metadata;
    const object: Fields & { metadata: Partial<Metadata> } = {
      ...rest,
      metadata: { ...named, ...(namespace === undefined ? {} : { namespace }) },
      ...(resource.hasStatus === true ? { status: firstStatus(resource) } : {}),
    };
    fillDefaults(resource, object);
    validate(resource, metadata.name ?? `${metadata.generateName ?? ''}x`, object);
    if (resource.name === 'pods') checkQuota(storage, object as unknown as Pod);
    const added = storage.add(resource, object as unknown as Loose);
    if (resource === namespaces) addDefaultServiceAccount(added.metadata.name);
    return toResponse(target, added);
  }

  function addDefaultServiceAccount(namespace: string): void {
    storage.add(serviceAccounts, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace, name: 'default' },
    });
  }

  /** For compatibility, the API server leaves the pods of a deleted Job unless it is asked to delete them. */
  function orphanPods({ metadata: { uid, namespace } }: KubeObject): void {
    for (const pod of storage.list(podResource, namespace)) {
      const { ownerReferences = [], ...metadata } = pod.metadata;
      if (ownerReferences.some((owner) => owner.uid === uid))
        storage.replace(podResource, { ...pod, metadata });
    }
  }

  /** Checks that the body of a request fits its target. */
  function read(target: Target, body: unknown, isPatched = false): Fields & { metadata: Partial<Metadata> } {
    const given = withoutNulls(body);
    if (!isFields(given)) throw badRequest('the body is not an object');
    const { resource, namespace } = target;
    const [kind, apiVersion] = [given.kind ?? resource.kind, given.apiVersion ?? groupVersionOf(target)];
    if (kind !== resource.kind || apiVersion !== groupVersionOf(target)) {
      throw badRequest(
        `${textOf(kind)} in version ${textOf(apiVersion)} cannot be handled as a ${resource.kind}`,
      );
    }
    const metadata: Partial<Metadata> = isFields(given.metadata) ? { ...given.metadata } : {};
    if (namespace !== undefined && (metadata.namespace ?? namespace) !== namespace) {
      throw badRequest(
        'the namespace of the provided object does not match the namespace sent on the request',
      );
    }
    if (target.name !== undefined && metadata.name !== target.name) {
      throw badRequest(
        `the name of the object (${metadata.name ?? ''}) does not match the name on the URL (${target.name})`,
      );
    }
    for (const name of ['labels', 'annotations'] as const) {
      if (textOf(metadata[name] ?? {}) === '{}') Reflect.deleteProperty(metadata, name);
    }
    const malformed = findMalformed(resource, given);
    if (malformed !== undefined && isPatched) throw unprocessable(malformed);
    if (malformed !== undefined) {
      throw badRequest(
        `${resource.kind} in version "v1" cannot be handled as a ${resource.kind}: ${malformed}`,
      );
    }
    return { ...given, kind, apiVersion, metadata };
  }

  function replace(target: Target, given: unknown, isPatched = false): KubeObject {
    const { resource, name = '' } = target;
    const before = present(target);
    const body = read(target, given, isPatched);
    const { resourceVersion, uid } = body.metadata;
    if (uid !== undefined && uid !== before.metadata.uid) {
      throw conflict(
        resource,
        name,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${before.metadata.uid}`,
      );
    }
    if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
      throw conflict(resource, name);
    }
    const { creationTimestamp, generation } = before.metadata;
    const fixed = { uid: before.metadata.uid, creationTimestamp, ...(generation && { generation }) };
    if (target.subresource === 'status') {
      const { status, ...rest } = before;
      const next = (body.status ?? status) as Fields | undefined;
      return keep(target, before, { ...rest, ...(next === undefined ? {} : { status: next }) });
    }
    const { status: _status, ...rest } = body;
    const metadata = { ...body.metadata, ...fixed, name, resourceVersion: before.metadata.resourceVersion };
    const after = {
      ...(rest as unknown as Loose),
      metadata: { ...metadata, ...(target.namespace === undefined ? {} : { namespace: target.namespace }) },
      ...(before.status === undefined ? {} : { status: before.status }),
    };
    fillDefaults(resource, after);
    validate(resource, name, after);
    return keep(target, before, after);
  }

  function keep(target: Target, before: Loose, after: Loose): KubeObject {
    const { resource } = target;
    if (textOf(before) === textOf(after)) return toResponse(target, before);
    const hasNewAnnotations =
      resource.name === 'deployments' &&
      textOf(before.metadata.annotations ?? {}) !== textOf(after.metadata.annotations ?? {});
    if (
      resource.hasGeneration === true &&
      (textOf(before.spec) !== textOf(after.spec) || hasNewAnnotations)
    ) {
      after.metadata.generation = (before.metadata.generation ?? 0) + 1;
    }
    return toResponse(target, storage.replace(resource, after));
  }

  return {
    create,
    exists,
    get: (target: Target): KubeObject => toResponse(target, present(target)),
    list: (target: Target): KubeObject[] =>
      storage.peek(target.resource, target.namespace).map((object) => toResponse(target, object)),
    update(target: Target, given: unknown): KubeObject {
      const version =
        isFields(given) && isFields(given.metadata) ? given.metadata.resourceVersion : undefined;
      if (target.resource.name === 'leases' && (version ?? '') === '') {
        const why = 'Invalid value: 0x0: must be specified for an update';
        throw invalid(target.resource, target.name ?? '', 'metadata.resourceVersion', why);
      }
      // Of all kinds only a Lease is created by an update, with any resourceVersion.
      if (target.resource.name === 'leases' && !exists(target)) return create(target, given);
      return replace(target, given);
    },
    patch: (target: Target, patch: unknown, contentType: string): KubeObject =>
      replace(target, applyPatch(toResponse(target, present(target)), patch, contentType), true),
    remove(target: Target, options: unknown): KubeObject {
      const { resource, name = '' } = target;
      const object = present(target);
      const wanted = isFields(options) && isFields(options.preconditions) ? options.preconditions : {};
      for (const field of ['uid', 'resourceVersion'] as const) {
        if (wanted[field] === undefined || wanted[field] === object.metadata[field]) continue;
        const title = field === 'uid' ? 'UID' : 'ResourceVersion';
        throw conflict(
          resource,
          name,
          `the ${title} in the precondition (${textOf(wanted[field])}) does not match the ${title} in record (${object.metadata[field]})`,
        );
      }
      const policy = isFields(options) ? options.propagationPolicy : undefined;
      if (resource.name === 'jobs' && policy !== 'Background' && policy !== 'Foreground') orphanPods(object);
      storage.remove(resource, object);
      if (resource === namespaces) {
        for (const inside of storage.peekAll()) {
          if (inside.object.metadata.namespace === name) storage.remove(inside.resource, inside.object);
        }
      }
      return toResponse(target, object);
    },
  };
}

function firstStatus(resource: Resource): Fields {
  if (resource.name === 'pods') return { phase: 'Pending', qosClass: 'BestEffort' };
  if (resource.name === 'namespaces') return { phase: 'Active' };
  return Object.fromEntries((alwaysReported[resource.kind] ?? []).map((counter) => [counter, 0]));
}
