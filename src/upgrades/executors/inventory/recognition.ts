// Recognizes the version that a deployment runs by the images of its workloads. Two versions are never mixed: every
// workload that the manifest knows must have the image of the version.
import { formatCount, formatList, formatNumber } from '../../../lib/format.ts';
import { type Deployment, installedContainers, newestInstalled } from '../../versions/deployment.ts';
import { listDeployments } from '../../versions/installed-version.ts';
import { type Container, type Version, formatVersion } from '../../versions/manifest.ts';
import type { Recognition } from '../workloads.ts';
import type { FoundDeployment } from './found.ts';
import { hasImages, matchContainers } from './matching.ts';

export function recognizeVersion(
  manifest: readonly Version[],
  { workloads: found, namespace, problems }: FoundDeployment,
  imageRegistry: string | undefined,
): Recognition {
  if (!found) return { reason: `The namespace ${namespace} cannot be read: ${problems.join(' ')}` };
  const match = (containers: Iterable<Container>) =>
    matchContainers([...containers], found, new Map(), imageRegistry).workloads;
  const containers = manifest.flatMap((version) => [...version.containers, ...version.newContainers]);
  const known = match(new Map(containers.map((container) => [container.name, container])).values());
  if (known.length === 0)
    return { reason: `No workload of the namespace ${namespace} has a container that the manifest names.` };
  let best: { readonly present: Deployment; readonly names: ReadonlySet<string> } | undefined;
  const alike: string[] = [];
  for (const present of listDeployments(manifest).reverse()) {
    const fitting = match(installedContainers(present).values()).filter((workload) => hasImages(workload));
    const names = new Set(fitting.map(({ name }) => name));
    if (best?.names.size === known.length) {
      // What older versions share with each other does not matter.
      if (names.size < known.length) break;
      alike.push(formatVersion(newestInstalled(present)));
    } else if (names.size > (best?.names.size ?? 0)) best = { present, names };
  }
  if (!best) return { reason: `No workload of the namespace ${namespace} has an image of the manifest.` };
  const others = known.flatMap(({ name }) => (best.names.has(name) ? [] : name));
  const count = formatCount(known.length, 'workload');
  const also =
    alike.length > 0 ? `, which ${formatList(alike)} ${alike.length === 1 ? 'has' : 'have'} too` : '';
  if (others.length === 0) return { present: best.present, from: `the images of ${count}${also}` };
  const version = formatVersion(newestInstalled(best.present));
  const which = `the images of ${version}, the version that fits best`;
  return {
    reason: `${formatNumber(others.length)} of ${count} do not have ${which}: ${formatList(others)}.`,
  };
}
