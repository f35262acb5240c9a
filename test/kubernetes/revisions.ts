// ControllerRevisions of the fake cluster: every template that a StatefulSet or DaemonSet has had. The newest has
// the highest number.
import { type ControllerContext, hashOf, ownedBy, referTo } from './controller-tools.ts';
import type { ControllerRevision, Workload } from './objects.ts';
import { resourceOf } from './resources.ts';

const revisions = resourceOf('controllerrevisions');
export const revisionLabel = 'controller-revision-hash';

/** The revision of the current template. An earlier revision of the same template becomes the newest again. */
export function currentRevision(context: ControllerContext, owner: Workload): ControllerRevision {
  const { storage } = context;
  const known = listRevisions(context, owner);
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

export const listRevisions = (context: ControllerContext, owner: Workload): ControllerRevision[] =>
  ownedBy<ControllerRevision>(context, revisions, owner);

export const hashOfRevision = ({ metadata }: ControllerRevision): string =>
  metadata.labels?.[revisionLabel] ?? '';
