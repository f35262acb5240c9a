// Builds the workloads that the executor reads from short descriptions.
import {
  type ClusterWorkload,
  type Kind,
  parseWorkload,
} from '../../src/upgrades/executors/kubernetes/workload.ts';

export type Simple = {
  name: string;
  kind?: Kind;
  label?: string;
  containers?: Record<string, string>;
  init?: Record<string, string>;
};

export function found({
  name,
  kind = 'Deployment',
  label,
  containers = {},
  init = {},
}: Simple): ClusterWorkload {
  const list = (images: Record<string, string>) =>
    Object.entries(images).map(([key, image]) => ({ name: key, image }));
  return parseWorkload(kind, {
    metadata: { name, ...(label !== undefined && { labels: { 'steward/container': label } }) },
    spec: { template: { spec: { containers: list(containers), initContainers: list(init) } } },
  });
}
