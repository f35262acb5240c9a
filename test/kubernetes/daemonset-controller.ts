// The DaemonSet controller of the fake cluster: one pod for each Node that the template asks for.
import {
  type Hands,
  createPod,
  isActive,
  isAvailable,
  isReady,
  ownedBy,
  podResource,
  retryMs,
  shareOf,
  writeStatus,
} from './hands.ts';
import type { Pod, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';
import { hashOfRevision, presentRevision, revisionLabel } from './revisions.ts';
import { matches } from './selectors.ts';

const daemonSets = resourceOf('daemonsets');
const nodeResource = resourceOf('nodes');

type NodeAffinity = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: { matchFields: { key: string; operator: string; values: string[] }[] }[];
    };
  };
};

const affinityTo = (node: string): NodeAffinity => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
    },
  },
});

/** No scheduler has ever to have seen the pod. */
function nodeOf({ spec }: Pod): string | undefined {
  const affinity = spec.affinity as NodeAffinity | undefined;
  const terms = affinity?.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
  return spec.nodeName ?? terms?.[0]?.matchFields[0]?.values[0];
}

export function syncDaemonSet(hands: Hands, set: Workload): void {
  const { storage, wakeAt } = hands;
  const revision = presentRevision(hands, set);
  const hash = hashOfRevision(revision);
  const { template, minReadySeconds, updateStrategy } = set.spec;
  const nodes = storage
    .peek(nodeResource)
    .filter(({ metadata }) => matches({ matchLabels: template.spec.nodeSelector ?? {} }, metadata.labels))
    .map(({ metadata }) => metadata.name);
  const pods = () => ownedBy<Pod>(hands, podResource, set);
  const isFit = (pod: Pod) => isAvailable(hands, pod, minReadySeconds);
  const isUpdated = ({ metadata }: Pod) => metadata.labels?.[revisionLabel] === hash;

  for (const pod of pods()) {
    if (!isActive(pod) || !nodes.includes(nodeOf(pod) ?? '')) storage.remove(podResource, pod);
  }
  for (const node of nodes) {
    if (pods().some((pod) => nodeOf(pod) === node)) continue;
    const parts = { labels: { [revisionLabel]: hash }, spec: { affinity: affinityTo(node) } };
    if (createPod(hands, set, template, parts) !== undefined) wakeAt(Date.now() + retryMs);
  }

  if (updateStrategy?.type === 'RollingUpdate') {
    const most = Math.max(1, shareOf(updateStrategy.rollingUpdate?.maxUnavailable ?? 1, nodes.length, 'up'));
    const old = pods().filter((pod) => !isUpdated(pod));
    const room = Math.max(0, most - (nodes.length - pods().filter(isFit).length));
    const sick = old.filter((pod) => !isFit(pod));
    const healthy = old.filter(isFit).slice(0, room);
    for (const pod of [...sick, ...healthy]) storage.remove(podResource, pod);
  }

  const present = pods();
  const numberAvailable = present.filter(isFit).length;
  writeStatus(hands, daemonSets, set, {
    observedGeneration: set.metadata.generation ?? 1,
    desiredNumberScheduled: nodes.length,
    currentNumberScheduled: present.length,
    numberMisscheduled: 0,
    updatedNumberScheduled: present.filter(isUpdated).length,
    numberReady: present.filter(isReady).length,
    numberAvailable,
    numberUnavailable: nodes.length - numberAvailable,
  });
}
