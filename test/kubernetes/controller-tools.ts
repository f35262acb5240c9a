// Functions that the controllers of the fake cluster share: finding, creating and checking pods, and writing a status.
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
  alwaysReported,
} from './objects.ts';
import type { Registry } from './registry.ts';
import { type Resource, resourceOf } from './resources.ts';
import { StatusError } from './status-error.ts';
import type { Storage } from './storage.ts';

export type ControllerContext = {
  storage: Storage;
  registry: Registry;
  /** The clock of the cluster, which a test can advance. */
  now: () => number;
  /** Runs the controllers at that time, even if nothing changes. */
  wakeAt: (at: number) => void;
};

export const podResource = resourceOf('pods');

export const isReady = ({ status }: Pod): boolean =>
  status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;

export const isRunningAndReady = (pod: Pod): boolean => pod.status.phase === 'Running' && isReady(pod);

export function isAvailable({ now, wakeAt }: ControllerContext, pod: Pod, minReadySeconds = 0): boolean {
  if (!isReady(pod)) return false;
  if (minReadySeconds === 0) return true;
  const since = pod.status.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime;
  const at = Date.parse(since ?? '') + minReadySeconds * 1000;
  if (at > now()) wakeAt(at);
  return at <= now();
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

/** The objects that a workload owns, oldest first. */
export const ownedBy = <T extends KubeObject>(
  { storage }: ControllerContext,
  resource: Resource,
  owner: KubeObject,
): T[] => storage.list<T>(resource, owner.metadata.namespace, (object) => isOwnedBy(object, owner));

/** Uses only letters and digits that form no words, like Kubernetes. */
export const hashOf = (template: PodTemplate): string =>
  [...createHash('sha256').update(textOf(template)).digest().subarray(0, 10)]
    .map((byte) => 'bcdfghjklmnpqrstvwxz2456789'[byte % 27])
    .join('');

type PodParts = { name?: string; labels: Record<string, string>; spec?: Fields };

/** Returns why the server refused the pod, or undefined. */
export function createPod(
  { registry }: ControllerContext,
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
  const target = { resource: podResource, version: 'v1', namespace: owner.metadata.namespace ?? '' };
  try {
    registry.create(target, { metadata, spec: { ...template.spec, ...spec } });
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error.message;
    throw error;
  }
}

/** The pause after a refused pod: no change may announce that the cause is gone. */
export const retryMs = 50;

export function writeStatus(
  { storage }: ControllerContext,
  resource: Resource,
  of: Workload,
  next: WorkloadStatus,
): void {
  const { namespace, name } = of.metadata;
  const present = storage.get(resource, namespace, name) as Workload | undefined;
  if (!present) return;
  const reported = Object.entries(next).filter(
    ([field, value]) =>
      value !== 0 || field === 'collisionCount' || alwaysReported[resource.kind]?.includes(field),
  );
  const status = Object.fromEntries(reported) as WorkloadStatus;
  if (textOf(status) !== textOf(present.status)) storage.replace(resource, { ...present, status });
}

/** `share` is a number or a percentage. */
export function shareOf(share: number | string | undefined, total: number, round: 'up' | 'down'): number {
  if (typeof share !== 'string') return share ?? 0;
  const value = (Number.parseInt(share) * total) / 100;
  return round === 'up' ? Math.ceil(value) : Math.floor(value);
}
