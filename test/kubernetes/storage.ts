// Where the fake cluster keeps its objects: one counter of versions for all, and everybody who listens is told of each change.
import { randomUUID } from 'node:crypto';
import { type KubeObject, type Metadata, seconds } from './objects.ts';
import type { Resource } from './resources.ts';
import { alreadyExists } from './status-error.ts';

export type Change = {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  version: number;
  resource: Resource;
  object: KubeObject;
};

/** How many changes a watcher may be behind. */
const changesKept = 5_000;

export type Storage = ReturnType<typeof createStorage>;

/** What goes in and comes out are copies. */
export function createStorage() {
  const objects = new Map<string, { resource: Resource; object: KubeObject }>();
  const listeners = new Set<(change: Change) => void>();
  const changes: Change[] = [];
  let version = 1;

  const keyOf = ({ group, name: resource }: Resource, namespace: string | undefined, name: string) =>
    `${group}/${resource}/${namespace ?? ''}/${name}`;

  function tell(type: Change['type'], resource: Resource, object: KubeObject): void {
    const change = { type, version, resource, object: structuredClone(object) };
    changes.push(change);
    if (changes.length > changesKept) changes.shift();
    for (const listener of listeners) listener(change);
  }

  function keep<T extends KubeObject>(resource: Resource, object: T, type: 'ADDED' | 'MODIFIED'): T {
    version += 1;
    const kept = structuredClone(object);
    kept.metadata.resourceVersion = String(version);
    const { namespace, name } = kept.metadata;
    objects.set(keyOf(resource, namespace, name), { resource, object: kept });
    tell(type, resource, kept);
    return structuredClone(kept);
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
      structuredClone(objects.get(keyOf(resource, namespace, name))?.object),
    /** Of one namespace or, without any, of all. */
    list<T extends KubeObject>(
      resource: Resource,
      namespace?: string,
      isWanted?: (object: KubeObject) => boolean,
    ): T[] {
      return peek(resource, namespace)
        .filter(isWanted ?? Boolean)
        .map((object) => structuredClone(object as T));
    },
    /** No copies, so they are only to be read. */
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
      return keep(resource, { ...object, metadata }, 'ADDED');
    },
    replace: <T extends KubeObject>(resource: Resource, object: T) => keep(resource, object, 'MODIFIED'),
    remove(resource: Resource, { metadata: { namespace, name } }: KubeObject): void {
      const key = keyOf(resource, namespace, name);
      const gone = objects.get(key)?.object;
      if (!gone) return;
      version += 1;
      objects.delete(key);
      gone.metadata.resourceVersion = String(version);
      tell('DELETED', resource, gone);
    },
  };
}
