// The controllers of the fake cluster: a few milliseconds after any change they look at everything once.
import { syncDaemonSet } from './daemonset-controller.ts';
import { syncDeployment } from './deployment-controller.ts';
import type { Hands } from './hands.ts';
import type { Workload } from './objects.ts';
import type { Registry } from './registry.ts';
import { syncReplicaSet } from './replicaset-controller.ts';
import { resourceOf } from './resources.ts';
import { syncStatefulSet } from './statefulset-controller.ts';
import type { Storage } from './storage.ts';

const controllers = [
  { resource: resourceOf('deployments'), sync: syncDeployment },
  { resource: resourceOf('replicasets'), sync: syncReplicaSet },
  { resource: resourceOf('statefulsets'), sync: syncStatefulSet },
  { resource: resourceOf('daemonsets'), sync: syncDaemonSet },
];

const watched = [
  ...['pods', 'nodes', 'resourcequotas', 'controllerrevisions'].map((name) => resourceOf(name)),
];

export function startControllers(storage: Storage, registry: Registry, delayMs: number) {
  let timer: NodeJS.Timeout | undefined;
  let nextLook = Infinity;

  function wakeAt(at: number): void {
    if (at >= nextLook) return;
    clearTimeout(timer);
    nextLook = at;
    timer = setTimeout(look, Math.min(Math.max(1, at - Date.now()), 2 ** 31 - 1));
  }

  const hands: Hands = { storage, registry, wakeAt };

  function look(): void {
    nextLook = Infinity;
    for (const { resource, sync } of controllers) {
      for (const workload of storage.list<Workload>(resource)) sync(hands, workload);
    }
    collectGarbage(storage);
  }

  const stop = storage.onChange(({ resource }) => {
    const isOurs = watched.includes(resource) || controllers.some((one) => one.resource === resource);
    if (isOurs) wakeAt(Date.now() + delayMs);
  });

  return {
    close() {
      stop();
      clearTimeout(timer);
      nextLook = -Infinity;
    },
  };
}

/** What belonged to something that is no more goes too. */
function collectGarbage(storage: Storage): void {
  const all = storage.peekAll();
  const alive = new Set(all.map(({ object }) => object.metadata.uid));
  for (const { resource, object } of all) {
    const owners = object.metadata.ownerReferences ?? [];
    if (owners.length > 0 && !owners.some(({ uid }) => alive.has(uid))) storage.remove(resource, object);
  }
}
