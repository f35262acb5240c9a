// The Deployment controller of the fake cluster: moves pods from old ReplicaSets to the one of the current template.
import { type ControllerContext, hashOf, ownedBy, referTo } from './controller-tools.ts';
import { maxUnavailableOf, replicasOf, surgeOf, sum } from './deployment-sizes.ts';
import { recordPaused, updateStatus, recordNewReplicaSet } from './deployment-status.ts';
import type { Workload } from './objects.ts';
import { resourceOf } from './resources.ts';

const deployments = resourceOf('deployments');
const replicaSets = resourceOf('replicasets');
const revisionAnnotation = 'deployment.kubernetes.io/revision';
const desiredAnnotation = 'deployment.kubernetes.io/desired-replicas';

const revisionOf = ({ metadata }: Workload) => Number(metadata.annotations?.[revisionAnnotation] ?? 0);

export function syncDeployment(context: ControllerContext, given: Workload): void {
  const { storage } = context;
  const all = ownedBy<Workload>(context, replicaSets, given);
  const hash = hashOf(given.spec.template);
  const isNew = ({ metadata }: Workload) => metadata.labels?.['pod-template-hash'] === hash;
  const old = all.filter((set) => !isNew(set));
  let present = all.find(isNew);
  let deployment = recordPaused(context, given);

  function recordRevision(): void {
    const revision = Math.max(0, ...old.map(revisionOf)) + 1;
    if (present && revisionOf(present) < revision) {
      present.metadata.annotations = {
        ...present.metadata.annotations,
        [revisionAnnotation]: String(revision),
      };
      present = storage.replace(replicaSets, present);
    }
    const recorded = String(present ? revisionOf(present) : revision);
    if (deployment.metadata.annotations?.[revisionAnnotation] === recorded) return;
    deployment.metadata.annotations = { ...deployment.metadata.annotations, [revisionAnnotation]: recorded };
    deployment = storage.replace(deployments, deployment);
  }

  function add(replicas: number): void {
    const { metadata, spec } = deployment;
    const labels = { ...spec.template.metadata?.labels, 'pod-template-hash': hash };
    present = storage.add(replicaSets, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `${metadata.name}-${hash}`,
        namespace: metadata.namespace ?? '',
        labels,
        annotations: {
          [revisionAnnotation]: String(Math.max(0, ...old.map(revisionOf)) + 1),
          [desiredAnnotation]: String(replicasOf(deployment)),
        },
        ownerReferences: [referTo(deployment)],
      },
      spec: {
        replicas,
        ...(spec.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
        selector: {
          ...spec.selector,
          matchLabels: { ...spec.selector.matchLabels, 'pod-template-hash': hash },
        },
        template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
      },
      status: {},
    });
    deployment = recordNewReplicaSet(context, deployment, present);
  }

  /** Returns whether the size has changed. */
  function scale(set: Workload, replicas: number): boolean {
    const isChanged = set.spec.replicas !== replicas;
    const desired = String(replicasOf(deployment));
    if (!isChanged && set.metadata.annotations?.[desiredAnnotation] === desired) return false;
    set.metadata.annotations = { ...set.metadata.annotations, [desiredAnnotation]: desired };
    if (isChanged) set.metadata.generation = (set.metadata.generation ?? 0) + 1;
    set.spec.replicas = replicas;
    Object.assign(set, storage.replace(replicaSets, set));
    return isChanged;
  }

  const sizeOfNew = () => {
    const wanted = replicasOf(deployment);
    const size = present ? replicasOf(present) : 0;
    if (size > wanted) return wanted;
    const room = wanted + surgeOf(deployment) - sum([...old, ...(present ? [present] : [])], replicasOf);
    return size + Math.max(0, Math.min(room, wanted - size));
  };

  function roll(): void {
    if (!present) add(sizeOfNew());
    recordRevision();
    if (!present || scale(present, sizeOfNew())) return;
    shrinkOld(present);
  }

  function shrinkOld(current: Workload): void {
    const minimum = replicasOf(deployment) - maxUnavailableOf(deployment);
    const available = (set: Workload) => set.status.availableReplicas ?? 0;
    const unavailable = replicasOf(current) - available(current);
    let room = sum([...old, current], replicasOf) - minimum - unavailable;
    for (const set of old) {
      const unready = Math.min(room, replicasOf(set) - available(set));
      if (unready <= 0) continue;
      scale(set, replicasOf(set) - unready);
      room -= unready;
    }
    room = Math.min(room, sum([...old, current], available) - minimum);
    for (const set of old) {
      const fewer = Math.min(room, replicasOf(set));
      if (fewer <= 0) continue;
      scale(set, replicasOf(set) - fewer);
      room -= fewer;
    }
  }

  /** Follows a change of the wanted number of replicas: old sets shrink first, then the new one grows. */
  function resize(): void {
    const active = [...old, ...(present ? [present] : [])].filter((set) => replicasOf(set) > 0);
    const wanted = replicasOf(deployment);
    const [only = present ?? old.at(-1)] = active;
    if (active.length <= 1) {
      if (only) scale(only, wanted);
      return;
    }
    let surplus = sum(active, replicasOf) - wanted - surgeOf(deployment);
    for (const set of active) {
      const fewer = Math.max(0, Math.min(surplus, replicasOf(set)));
      const more = set === present && surplus < 0 ? -surplus : 0;
      scale(set, Math.min(replicasOf(set) - fewer + more, set === present ? wanted : Infinity));
      surplus -= fewer;
    }
  }

  const isResized = all.some(
    (set) =>
      replicasOf(set) > 0 && set.metadata.annotations?.[desiredAnnotation] !== String(replicasOf(deployment)),
  );
  const { paused = false } = deployment.spec;
  if (paused || isResized) resize();
  else roll();
  const isComplete = updateStatus(context, deployment, [...old, ...(present ? [present] : [])], present);
  if (isComplete) deleteIdleSets(context, deployment, old);
}

function deleteIdleSets({ storage }: ControllerContext, { spec }: Workload, old: Workload[]): void {
  const idle = old.filter((set) => replicasOf(set) === 0 && (set.status.replicas ?? 0) === 0);
  const oldestFirst = idle.sort((a, b) => revisionOf(a) - revisionOf(b));
  const surplus = Math.max(0, idle.length - (spec.revisionHistoryLimit ?? 10));
  for (const set of oldestFirst.slice(0, surplus)) storage.remove(replicaSets, set);
}
