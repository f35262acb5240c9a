// The digest of a plan: equal digests mean the same versions in every hop, the same images and the same steps.
import { createHash } from 'node:crypto';
import { installedVersions } from '../versions/deployment.ts';
import type { Container, Version } from '../versions/manifest.ts';
import type { Step } from './plan.ts';
import type { PreparedJob } from './preflight.ts';

/**
 * Lists the values in a fixed order, because a database may return the fields of an object in another order than it
 * got them.
 */
export function digestPlan({ from, to, plan }: PreparedJob): string {
  const versions = plan.hops.map(({ after }) => installedVersions(after).map(versionValues));
  const content = JSON.stringify([from, to, versions, plan.steps.map(stepValues)]);
  return createHash('sha256').update(content).digest('hex');
}

function versionValues({ id, type, version, build, containers, newContainers }: Version) {
  return [id, type, version, build, containers.map(containerValues), newContainers.map(containerValues)];
}

function containerValues({ name, image, checksum }: Container) {
  return [name, image, checksum];
}

function stepValues({ id, name, performedBy, template, isSkipped, action, codes, workload }: Step) {
  const parts = workload?.parts.map(({ container, image, formerImage }) => [container, image, formerImage]);
  const values = [id, name, performedBy, template, isSkipped, action, codes];
  return [...values, workload && [workload.name, workload.component, parts]];
}
