// The Deployment controller of the fake cluster: moves pods from old ReplicaSets to the one of the present template.
import { type Hands, hashOf, isActive, ownedBy, podResource, referTo } from './hands.ts';
import { checkPaused, tellStatus, tellNewReplicaSet } from './deployment-status.ts';
import { maxUnavailableOf, replicasOf, surgeOf, sum } from './deployment-sizes.ts';
import type { Pod, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';

const deployments = resourceOf('deployments');
const replicaSets = resourceOf('replicasets');
const revisionNote = 'deployment.kubernetes.io/revision';
const desiredNote = 'deployment.kubernetes.io/desired-replicas';

const revisionOf = ({ metadata }: Workload) => Number(metadata.annotations?.[revisionNote] ?? 0);

export function syncDeployment(hands: Hands, given: Workload): void {
  const { storage } = hands;
  const all = ownedBy<Workload>(hands, replicaSets, given);
  const hash = hashOf(given.spec.template);
  const isNew = ({ metadata }: Workload) => metadata.labels?.['pod-template-hash'] === hash;
  const old = all.filter((set) => !isNew(set));
  let present = all.find(isNew);
  let deployment = checkPaused(hands, given);

  function note(): void {
    const revision = Math.max(0, ...old.map(revisionOf)) + 1;
    if (present && revisionOf(present) < revision) {
      present.metadata.annotations = { ...present.metadata.annotations, [revisionNote]: String(revision) };
      present = storage.replace(replicaSets, present);
    }
    const told = String(present ? revisionOf(present) : revision);
    if (deployment.metadata.annotations?.[revisionNote] === told) return;
    deployment.metadata.annotations = { ...deployment.metadata.annotations, [revisionNote]: told };
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
          [revisionNote]: String(Math.max(0, ...old.map(revisionOf)) + 1),
          [desiredNote]: String(replicasOf(deployment)),
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
    deployment = tellNewReplicaSet(hands, deployment, present);
  }

  /** Answers whether the size was another one. */
  function scale(set: Workload, replicas: number): boolean {
    const isOther = set.spec.replicas !== replicas;
    const desired = String(replicasOf(deployment));
    if (!isOther && set.metadata.annotations?.[desiredNote] === desired) return false;
    set.metadata.annotations = { ...set.metadata.annotations, [desiredNote]: desired };
    if (isOther) set.metadata.generation = (set.metadata.generation ?? 0) + 1;
    set.spec.replicas = replicas;
    Object.assign(set, storage.replace(replicaSets, set));
    return isOther;
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
    note();
    if (!present || scale(present, sizeOfNew())) return;
    shrinkOld(present);
  }

  function shrinkOld(current: Workload): void {
    const least = replicasOf(deployment) - maxUnavailableOf(deployment);
    const available = (set: Workload) => set.status.availableReplicas ?? 0;
    const unavailable = replicasOf(current) - available(current);
    let room = sum([...old, current], replicasOf) - least - unavailable;
    for (const set of old) {
      const sick = Math.min(room, replicasOf(set) - available(set));
      if (sick <= 0) continue;
      scale(set, replicasOf(set) - sick);
      room -= sick;
    }
    room = Math.min(room, sum([...old, current], available) - least);
    for (const set of old) {
      const fewer = Math.min(room, replicasOf(set));
      if (fewer <= 0) continue;
      scale(set, replicasOf(set) - fewer);
      room -= fewer;
    }
  }

  function recreate(): void {
    if (old.map((set) => scale(set, 0)).includes(true)) return;
    if (old.some((set) => ownedBy<Pod>(hands, podResource, set).some(isActive))) return;
    if (!present) add(replicasOf(deployment));
    note();
    if (present) scale(present, replicasOf(deployment));
  }

  /** The number that is wanted has changed: all sets follow, the old ones shrink first and the new one grows. */
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
      replicasOf(set) > 0 && set.metadata.annotations?.[desiredNote] !== String(replicasOf(deployment)),
  );
  const { paused = false, strategy } = deployment.spec;
  if (paused || isResized) resize();
  else if (strategy?.type === 'Recreate') recreate();
  else roll();
  const isComplete = tellStatus(hands, deployment, [...old, ...(present ? [present] : [])], present);
  if (isComplete) forget(hands, deployment, old);
}

function forget({ storage }: Hands, { spec }: Workload, old: Workload[]): void {
  const idle = old.filter((set) => replicasOf(set) === 0 && (set.status.replicas ?? 0) === 0);
  const gone = idle.sort((a, b) => revisionOf(a) - revisionOf(b));
  const surplus = Math.max(0, idle.length - (spec.revisionHistoryLimit ?? 10));
  for (const set of gone.slice(0, surplus)) storage.remove(replicaSets, set);
}
