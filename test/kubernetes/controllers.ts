// The controllers of the fake cluster: a few milliseconds after a change they process all workloads once.
import type { ControllerContext } from './controller-tools.ts';
import { syncDaemonSet } from './daemonset-controller.ts';
import { syncDeployment } from './deployment-controller.ts';
import { syncJob } from './job-controller.ts';
import type { Job, Workload } from './objects.ts';
import type { Registry } from './registry.ts';
import { syncReplicaSet } from './replicaset-controller.ts';
import { resourceOf } from './resources.ts';
import { syncStatefulSet } from './statefulset-controller.ts';
import type { Storage } from './storage.ts';

const deployments = resourceOf('deployments');

const controllers = [
  { resource: deployments, sync: syncDeployment },
  { resource: resourceOf('replicasets'), sync: syncReplicaSet },
  { resource: resourceOf('statefulsets'), sync: syncStatefulSet },
  { resource: resourceOf('daemonsets'), sync: syncDaemonSet },
];

const jobs = resourceOf('jobs');

/** How long the controllers take to notice a change. */
const delayMs = 3;

const watched = ['pods', 'nodes', 'resourcequotas', 'controllerrevisions'].map((name) => resourceOf(name));

export function startControllers(storage: Storage, registry: Registry) {
  let pausedUntil = 0;
  let skippedMs = 0;
  let timer: NodeJS.Timeout | undefined;
  let nextRun = Infinity;

  const now = () => Date.now() + skippedMs;

  function wakeAt(at: number): void {
    if (at >= nextRun) return;
    clearTimeout(timer);
    nextRun = at;
    timer = setTimeout(syncAll, Math.min(Math.max(1, at - now()), 2 ** 31 - 1));
  }

  const context: ControllerContext = { storage, registry, now, wakeAt };

  function syncAll(): void {
    nextRun = Infinity;
    for (const { resource, sync } of controllers) {
      if (resource === deployments && now() < pausedUntil) {
        wakeAt(pausedUntil);
        continue;
      }
      for (const workload of storage.list<Workload>(resource)) sync(context, workload);
    }
    for (const job of storage.list<Job>(jobs)) syncJob(context, job);
    collectGarbage(storage);
  }

  const stop = storage.onChange(({ resource }) => {
    const isRelevant =
      resource === jobs || watched.includes(resource) || controllers.some((one) => one.resource === resource);
    if (isRelevant) wakeAt(now() + delayMs);
  });

  return {
    pauseDeployments(ms: number) {
      pausedUntil = now() + ms;
      wakeAt(pausedUntil);
    },
    /** Deadlines and grace periods of this length are over. */
    skip(ms: number) {
      skippedMs += ms;
      nextRun = Infinity;
      wakeAt(now() + delayMs);
    },
    close() {
      stop();
      clearTimeout(timer);
      nextRun = -Infinity;
    },
  };
}

/** Deletes objects whose owners no longer exist. */
function collectGarbage(storage: Storage): void {
  const all = storage.peekAll();
  const alive = new Set(all.map(({ object }) => object.metadata.uid));
  for (const { resource, object } of all) {
    const owners = object.metadata.ownerReferences ?? [];
    if (owners.length > 0 && !owners.some(({ uid }) => alive.has(uid))) storage.remove(resource, object);
  }
}
