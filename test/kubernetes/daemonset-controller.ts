// The DaemonSet controller of the fake cluster: one pod for each Node that the node selector matches.
import {
  type ControllerContext,
  createPod,
  isActive,
  isAvailable,
  isReady,
  ownedBy,
  podResource,
  retryMs,
  shareOf,
  writeStatus,
} from './controller-tools.ts';
import type { Pod, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';
import { hashOfRevision, currentRevision, revisionLabel } from './revisions.ts';
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

/** Also known for a pod that no scheduler has processed. */
function nodeOf({ spec }: Pod): string | undefined {
  const affinity = spec.affinity as NodeAffinity | undefined;
  const terms = affinity?.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
  return spec.nodeName ?? terms?.[0]?.matchFields[0]?.values[0];
}

export function syncDaemonSet(context: ControllerContext, set: Workload): void {
  const { storage } = context;
  const revision = currentRevision(context, set);
  const hash = hashOfRevision(revision);
  const { template, minReadySeconds, updateStrategy } = set.spec;
  const nodes = storage
    .peek(nodeResource)
    .filter(({ metadata }) => matches({ matchLabels: template.spec.nodeSelector ?? {} }, metadata.labels))
    .map(({ metadata }) => metadata.name);
  const pods = () => ownedBy<Pod>(context, podResource, set);
  const isPodAvailable = (pod: Pod) => isAvailable(context, pod, minReadySeconds);
  const isUpdated = ({ metadata }: Pod) => metadata.labels?.[revisionLabel] === hash;

  for (const pod of pods()) {
    if (!isActive(pod) || !nodes.includes(nodeOf(pod) ?? '')) storage.remove(podResource, pod);
  }
  for (const node of nodes) {
    if (pods().some((pod) => nodeOf(pod) === node)) continue;
    const spec = { affinity: affinityTo(node), nodeName: node };
    const parts = { labels: { [revisionLabel]: hash }, spec };
    if (createPod(context, set, template, parts) !== undefined) context.wakeAt(context.now() + retryMs);
  }

  if (updateStrategy?.type === 'RollingUpdate') {
    const maxUnavailable = Math.max(
      1,
      shareOf(updateStrategy.rollingUpdate?.maxUnavailable ?? 1, nodes.length, 'up'),
    );
    const old = pods().filter((pod) => !isUpdated(pod));
    const room = Math.max(0, maxUnavailable - (nodes.length - pods().filter(isPodAvailable).length));
    const unavailable = old.filter((pod) => !isPodAvailable(pod));
    const healthy = old.filter(isPodAvailable).slice(0, room);
    for (const pod of [...unavailable, ...healthy]) storage.remove(podResource, pod);
  }

  const present = pods();
  const numberAvailable = present.filter(isPodAvailable).length;
  writeStatus(context, daemonSets, set, {
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
