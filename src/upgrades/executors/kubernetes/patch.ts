// The one patch by which a workload gets other images: the images and our record of it together.
import type { Workload } from '../../workloads.ts';
import type { ClusterWorkload } from './workload.ts';
import type { Direction } from './rollout.ts';

/** What is written on a workload, for people and for whoever takes the job up. */
export const annotations = {
  job: 'steward/job',
  state: 'steward/state',
  /** A JSON object: the images it had before it was changed last, by container. */
  formerImages: 'steward/former-images',
  /** When the controller had given up on the template before; it goes on saying so until there is progress with the new one. */
  exceededBefore: 'steward/exceeded-before',
} as const;

/** What the state says while a workload is on its way, and when it has come through. */
export const starts: Readonly<Record<Direction, string>> = { image: 'updating', formerImage: 'putting back' };
export const ends: Readonly<Record<Direction, string>> = { image: 'updated', formerImage: 'put back' };

/** Refused by the server where the workload is no longer as it was found. */
export function buildPatch(
  found: ClusterWorkload,
  { parts }: Workload,
  aim: Direction,
  jobId: string,
): object {
  // In their order in the workload: the merge would take over another one, and with it change more than images.
  const images = (isInit: boolean) =>
    found.containers
      .filter((one) => one.isInit === isInit)
      .flatMap(({ name }) => {
        const part = parts.find(({ container }) => container === name);
        return part ? { name, image: part[aim] } : [];
      });
  const [containers, initContainers] = [images(false), images(true)];
  const formerImages = Object.fromEntries(
    parts.map(({ container, formerImage }) => [container, formerImage]),
  );
  return {
    metadata: {
      resourceVersion: found.resourceVersion,
      annotations: {
        [annotations.job]: jobId,
        [annotations.state]: starts[aim],
        [annotations.formerImages]: JSON.stringify(formerImages),
        [annotations.exceededBefore]: found.exceeded?.at ?? null,
      },
    },
    spec: {
      template: {
        spec: {
          ...(containers.length > 0 && { containers }),
          ...(initContainers.length > 0 && { initContainers }),
        },
      },
    },
  };
}
