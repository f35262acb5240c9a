// Stores the objects of the fake cluster, with one version counter for all, and notifies listeners of each change.
import { randomUUID } from 'node:crypto';
import { type KubeObject, type Metadata, copy, seconds } from './objects.ts';
import type { Resource } from './resources.ts';
import { alreadyExists } from './status-error.ts';

export type Change = {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  version: number;
  resource: Resource;
  object: KubeObject;
};

/** How many changes a watch can start behind the newest. */
const storedChanges = 5_000;

export type Storage = ReturnType<typeof createStorage>;

/** Objects are copied on the way in and out. */
export function createStorage() {
  const objects = new Map<string, { resource: Resource; object: KubeObject }>();
  const listeners = new Set<(change: Change) => void>();
  const changes: Change[] = [];
  let version = 1;

  const keyOf = ({ group, name: resource }: Resource, namespace: string | undefined, name: string) =>
    `${group}/${resource}/${namespace ?? ''}/${name}`;

  function notify(type: Change['type'], resource: Resource, object: KubeObject): void {
    const change = { type, version, resource, object };
    changes.push(change);
    if (changes.length > storedChanges) changes.shift();
    for (const listener of listeners) listener(change);
  }

  function store<T extends KubeObject>(resource: Resource, object: T, type: 'ADDED' | 'MODIFIED'): T {
    version += 1;
    const stored = copy(object);
    stored.metadata.resourceVersion = String(version);
    const { namespace, name } = stored.metadata;
    objects.set(keyOf(resource, namespace, name), { resource, object: stored });
    notify(type, resource, stored);
    return copy(stored);
  }

  function peek(resource: Resource, namespace?: string): KubeObject[] {
    const found: KubeObject[] = [];
    for (const one of objects.values()) {
      if (one.resource !== resource) continue;
      if (namespace === undefined || one.object.metadata.namespace === namespace) found.push(one.object);
    }
    return found;
  }

  return {
    version: () => String(version),
    /** Changes after a version, oldest first. */
    changesSince: (since: number): Change[] => changes.filter((change) => change.version > since),
    onChange(listener: (change: Change) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    get: (resource: Resource, namespace: string | undefined, name: string): KubeObject | undefined =>
      copy(objects.get(keyOf(resource, namespace, name))?.object),
    /** Without a namespace it lists the objects of all. */
    list<T extends KubeObject>(
      resource: Resource,
      namespace?: string,
      isWanted?: (object: KubeObject) => boolean,
    ): T[] {
      return peek(resource, namespace)
        .filter(isWanted ?? Boolean)
        .map((object) => copy(object as T));
    },
    /** Returns the stored objects without a copy: callers must not change them. */
    peek,
    peekAll: (): { resource: Resource; object: KubeObject }[] => [...objects.values()],
    add<T extends Omit<KubeObject, 'metadata'> & { metadata: Partial<Metadata> }>(
      resource: Resource,
      object: T,
    ) {
      const { generateName, ...given } = object.metadata;
      const name = given.name ?? `${generateName ?? ''}${randomUUID().slice(-5)}`;
      if (objects.has(keyOf(resource, given.namespace, name))) throw alreadyExists(resource, name);
      const metadata: Metadata = {
        ...given,
        name,
        ...(generateName === undefined ? {} : { generateName }),
        uid: randomUUID(),
        resourceVersion: '',
        creationTimestamp: seconds(),
        ...(resource.hasGeneration === true ? { generation: 1 } : {}),
      };
      return store(resource, { ...object, metadata }, 'ADDED');
    },
    replace<T extends KubeObject>(resource: Resource, object: T): T {
      const { namespace, name, deletionTimestamp } = object.metadata;
      const before = objects.get(keyOf(resource, namespace, name))?.object.metadata.finalizers ?? [];
      const stored = store(resource, object, 'MODIFIED');
      const isReleased = before.length > 0 && (object.metadata.finalizers ?? []).length === 0;
      if (isReleased && deletionTimestamp !== undefined) remove(resource, object);
      return stored;
    },
    remove,
  };

  /** An object with a finalizer stays, and only begins to end. */
  function remove(resource: Resource, { metadata: { namespace, name } }: KubeObject): void {
    const key = keyOf(resource, namespace, name);
    const deleted = objects.get(key)?.object;
    if (!deleted) return;
    const { finalizers = [], deletionTimestamp } = deleted.metadata;
    if (finalizers.length > 0) {
      const ending = { ...deleted.metadata, deletionTimestamp: seconds() };
      if (deletionTimestamp === undefined) store(resource, { ...deleted, metadata: ending }, 'MODIFIED');
      return;
    }
    version += 1;
    objects.delete(key);
    const metadata = { ...deleted.metadata, resourceVersion: String(version) };
    notify('DELETED', resource, { ...deleted, metadata });
  }
}
