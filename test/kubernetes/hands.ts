// What the controllers of the fake cluster share: how they find, make and judge pods, and how they write a status.
import { createHash } from 'node:crypto';
import {
  type Fields,
  type KubeObject,
  type OwnerReference,
  type Pod,
  type PodTemplate,
  type Workload,
  type WorkloadStatus,
  textOf,
  toldAlways,
} from './objects.ts';
import type { Registry } from './registry.ts';
import { type Resource, resourceOf } from './resources.ts';
import { StatusError } from './status-error.ts';
import type { Storage } from './storage.ts';

export type Hands = {
  storage: Storage;
  registry: Registry;
  /** Has the controllers look again then, whether something changes or not. */
  wakeAt: (at: number) => void;
};

export const podResource = resourceOf('pods');

export const isReady = ({ status }: Pod): boolean =>
  status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;

export const isRunningAndReady = (pod: Pod): boolean => pod.status.phase === 'Running' && isReady(pod);

export function isAvailable({ wakeAt }: Hands, pod: Pod, minReadySeconds = 0): boolean {
  if (!isReady(pod)) return false;
  if (minReadySeconds === 0) return true;
  const since = pod.status.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime;
  const at = Date.parse(since ?? '') + minReadySeconds * 1000;
  if (at > Date.now()) wakeAt(at);
  return at <= Date.now();
}

export const isActive = ({ status }: Pod): boolean =>
  status.phase !== 'Succeeded' && status.phase !== 'Failed';

export const referTo = ({ apiVersion, kind, metadata: { name, uid } }: KubeObject): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});

export const isOwnedBy = (object: KubeObject, { metadata }: KubeObject): boolean =>
  object.metadata.ownerReferences?.some(({ uid, controller }) => uid === metadata.uid && controller) ?? false;

/** What a workload owns, oldest first. */
export const ownedBy = <T extends KubeObject>(
  { storage }: Hands,
  resource: Resource,
  owner: KubeObject,
): T[] => storage.list<T>(resource, owner.metadata.namespace, (object) => isOwnedBy(object, owner));

/** Of letters and digits that make no words. */
export const hashOf = (template: PodTemplate): string =>
  [...createHash('sha256').update(textOf(template)).digest().subarray(0, 10)]
    .map((byte) => 'bcdfghjklmnpqrstvwxz2456789'[byte % 27])
    .join('');

type PodParts = { name?: string; labels: Record<string, string>; spec?: Fields };

/** Undefined, or why the server refused the pod. */
export function createPod(
  { registry }: Hands,
  owner: KubeObject,
  template: PodTemplate,
  { name, labels, spec = {} }: PodParts,
): string | undefined {
  const metadata = {
    ...template.metadata,
    ...(name === undefined ? { generateName: `${owner.metadata.name}-` } : { name }),
    labels: { ...template.metadata?.labels, ...labels },
    ownerReferences: [referTo(owner)],
  };
  const place = { resource: podResource, version: 'v1', namespace: owner.metadata.namespace ?? '' };
  try {
    registry.create(place, { metadata, spec: { ...template.spec, ...spec } });
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error.message;
    throw error;
  }
}

/** After a refusal there may be nothing that tells when it is worth another try. */
export const retryMs = 50;

export function writeStatus(
  { storage }: Hands,
  resource: Resource,
  of: Workload,
  next: WorkloadStatus,
): void {
  const { namespace, name } = of.metadata;
  const present = storage.get(resource, namespace, name) as Workload | undefined;
  if (!present) return;
  const told = Object.entries(next).filter(
    ([field, value]) =>
      value !== 0 || field === 'collisionCount' || toldAlways[resource.kind]?.includes(field),
  );
  const status = Object.fromEntries(told) as WorkloadStatus;
  if (textOf(status) !== textOf(present.status)) storage.replace(resource, { ...present, status });
}

/** Of a number or a percentage. */
export function shareOf(share: number | string | undefined, total: number, round: 'up' | 'down'): number {
  if (typeof share !== 'string') return share ?? 0;
  const value = (Number.parseInt(share) * total) / 100;
  return round === 'up' ? Math.ceil(value) : Math.floor(value);
}
