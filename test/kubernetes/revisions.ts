// ControllerRevisions of the fake cluster: each template that a StatefulSet or DaemonSet ever had, the newest with the highest number.
import { type Hands, hashOf, ownedBy, referTo } from './hands.ts';
import type { ControllerRevision, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';

const revisions = resourceOf('controllerrevisions');
export const revisionLabel = 'controller-revision-hash';

/** The revision of the present template; one that was there before becomes the newest again. */
export function presentRevision(hands: Hands, owner: Workload): ControllerRevision {
  const { storage } = hands;
  const known = listRevisions(hands, owner);
  const newest = Math.max(0, ...known.map(({ revision }) => revision));
  const hash = hashOf(owner.spec.template);
  const name = `${owner.metadata.name}-${hash}`;
  const found = known.find(({ metadata }) => metadata.name === name);
  if (found?.revision === newest) return found;
  if (found) return storage.replace(revisions, { ...found, revision: newest + 1 });
  return storage.add(revisions, {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name,
      namespace: owner.metadata.namespace ?? '',
      ownerReferences: [referTo(owner)],
      labels: { ...owner.spec.template.metadata?.labels, [revisionLabel]: hash },
    },
    data: { spec: { template: owner.spec.template } },
    revision: newest + 1,
  });
}

export const listRevisions = (hands: Hands, owner: Workload): ControllerRevision[] =>
  ownedBy<ControllerRevision>(hands, revisions, owner);

export const hashOfRevision = ({ metadata }: ControllerRevision): string =>
  metadata.labels?.[revisionLabel] ?? '';
