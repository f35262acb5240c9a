// The verbs of the fake API server on its storage: who may overwrite what, what is filled in, and what goes along with it.
import { fillDefaults, findMalformed, validate, validateChange } from './defaults.ts';
import { applyPatch } from './merge.ts';
import {
  type Fields,
  type KubeObject,
  type Metadata,
  type Pod,
  isFields,
  textOf,
  toldAlways,
  withoutNulls,
} from './objects.ts';
import { checkQuota, withUse } from './quota.ts';
import { type Resource, resourceOf } from './resources.ts';
import { badRequest, conflict, invalid, notFound, unprocessable } from './status-error.ts';
import type { Storage } from './storage.ts';

/** What a request is about. */
export type Place = {
  resource: Resource;
  version: string;
  namespace?: string;
  name?: string;
  subresource?: string;
};

type Loose = KubeObject & { spec?: Fields; status?: Fields };

const namespaces = resourceOf('namespaces');
const serviceAccounts = resourceOf('serviceaccounts');

const groupVersionOf = ({ resource, version }: Place) =>
  resource.group === '' ? version : `${resource.group}/${version}`;

export type Registry = ReturnType<typeof createRegistry>;

export function createRegistry(storage: Storage) {
  function told(place: Place, object: KubeObject): KubeObject {
    const full = place.resource.name === 'resourcequotas' ? withUse(storage, object) : object;
    return { ...full, apiVersion: groupVersionOf(place), kind: place.resource.kind };
  }

  function present(place: Place): Loose {
    const { resource, namespace, name = '' } = place;
    const found = storage.get(resource, namespace, name) as Loose | undefined;
    if (!found) throw notFound(resource, name);
    return found;
  }

  const isThere = ({ resource, namespace, name = '' }: Place) =>
    storage.get(resource, namespace, name) !== undefined;

  function create(place: Place, given: unknown): KubeObject {
    const { resource, namespace } = place;
    const body = read(place, given);
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
    if (resource === namespaces) furnish(added.metadata.name);
    return told(place, added);
  }

  function furnish(namespace: string): void {
    storage.add(serviceAccounts, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace, name: 'default' },
    });
  }

  /** The body of a request, once it is what the place is for. */
  function read(place: Place, body: unknown, isPatched = false): Fields & { metadata: Partial<Metadata> } {
    const given = withoutNulls(body);
    if (!isFields(given)) throw badRequest('the body is not an object');
    const { resource, namespace } = place;
    const [kind, apiVersion] = [given.kind ?? resource.kind, given.apiVersion ?? groupVersionOf(place)];
    if (kind !== resource.kind || apiVersion !== groupVersionOf(place)) {
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
    if (place.name !== undefined && metadata.name !== place.name) {
      throw badRequest(
        `the name of the object (${metadata.name ?? ''}) does not match the name on the URL (${place.name})`,
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

  function replace(place: Place, given: unknown, isPatched = false): KubeObject {
    const { resource, name = '' } = place;
    const before = present(place);
    const body = read(place, given, isPatched);
    const { resourceVersion, uid } = body.metadata;
    if (uid !== undefined && uid !== before.metadata.uid) {
      throw conflict(
        ...([resource, name] as const),
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${before.metadata.uid}`,
      );
    }
    if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
      throw conflict(resource, name);
    }
    const { creationTimestamp, generation } = before.metadata;
    const fixed = { uid: before.metadata.uid, creationTimestamp, ...(generation && { generation }) };
    if (place.subresource === 'status') {
      const { status, ...rest } = before;
      const next = (body.status ?? status) as Fields | undefined;
      return keep(place, before, { ...rest, ...(next === undefined ? {} : { status: next }) });
    }
    const { status: _status, ...rest } = body;
    const metadata = { ...body.metadata, ...fixed, name, resourceVersion: before.metadata.resourceVersion };
    const after = {
      ...(rest as unknown as Loose),
      metadata: { ...metadata, ...(place.namespace === undefined ? {} : { namespace: place.namespace }) },
      ...(before.status === undefined ? {} : { status: before.status }),
    };
    fillDefaults(resource, after);
    validate(resource, name, after);
    validateChange(resource, name, before, after);
    return keep(place, before, after);
  }

  function keep(place: Place, before: Loose, after: Loose): KubeObject {
    const { resource } = place;
    if (textOf(before) === textOf(after)) return told(place, before);
    const hasNewNotes =
      resource.name === 'deployments' &&
      textOf(before.metadata.annotations ?? {}) !== textOf(after.metadata.annotations ?? {});
    if (resource.hasGeneration === true && (textOf(before.spec) !== textOf(after.spec) || hasNewNotes)) {
      after.metadata.generation = (before.metadata.generation ?? 0) + 1;
    }
    return told(place, storage.replace(resource, after));
  }

  return {
    create,
    isThere,
    get: (place: Place): KubeObject => told(place, present(place)),
    list: (place: Place): KubeObject[] =>
      storage.peek(place.resource, place.namespace).map((object) => told(place, object)),
    update(place: Place, given: unknown): KubeObject {
      const version =
        isFields(given) && isFields(given.metadata) ? given.metadata.resourceVersion : undefined;
      if (place.resource.name === 'leases' && (version ?? '') === '') {
        const why = 'Invalid value: 0x0: must be specified for an update';
        throw invalid(place.resource, place.name ?? '', 'metadata.resourceVersion', why);
      }
      // A Lease is the one kind that is created by an update, whatever its version.
      if (place.resource.name === 'leases' && !isThere(place)) return create(place, given);
      return replace(place, given);
    },
    patch: (place: Place, patch: unknown, contentType: string): KubeObject =>
      replace(place, applyPatch(told(place, present(place)), patch, contentType), true),
    remove(place: Place, options: unknown): KubeObject {
      const { resource, name = '' } = place;
      const object = present(place);
      const wanted = isFields(options) && isFields(options.preconditions) ? options.preconditions : {};
      for (const field of ['uid', 'resourceVersion'] as const) {
        if (wanted[field] === undefined || wanted[field] === object.metadata[field]) continue;
        const title = field === 'uid' ? 'UID' : 'ResourceVersion';
        throw conflict(
          ...([resource, name] as const),
          `the ${title} in the precondition (${textOf(wanted[field])}) does not match the ${title} in record (${object.metadata[field]})`,
        );
      }
      storage.remove(resource, object);
      if (resource === namespaces) {
        for (const inside of storage.peekAll()) {
          if (inside.object.metadata.namespace === name) storage.remove(inside.resource, inside.object);
        }
      }
      return told(place, object);
    },
  };
}

function firstStatus(resource: Resource): Fields {
  if (resource.name === 'pods') return { phase: 'Pending', qosClass: 'BestEffort' };
  if (resource.name === 'namespaces') return { phase: 'Active' };
  return Object.fromEntries((toldAlways[resource.kind] ?? []).map((counter) => [counter, 0]));
}
