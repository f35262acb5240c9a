// The containers that a rollback gives another image.
import { type Deployment, installedContainers, installedVersions } from './deployment.ts';
import type { Container } from './manifest.ts';

/** `then` is undefined if the target version does not have the container. */
export type Move = {
  readonly now: Container;
  readonly then: Container | undefined;
  readonly isNew: boolean;
};

/** Last installed first: a rollback undoes the installation in reverse order. */
export function movesBetween(present: Deployment, after: Deployment): Move[] {
  const then = installedContainers(after);
  const added = new Set(
    installedVersions(present).flatMap((one) => one.newContainers.map(({ name }) => name)),
  );
  return [...installedContainers(present).values()]
    .map((now) => ({ now, then: then.get(now.name), isNew: added.has(now.name) }))
    .filter((move) => move.now.image !== move.then?.image || move.now.checksum !== move.then.checksum)
    .reverse();
}

/**
 * How many containers a rollback to each target moves, by the id of the target. Compares all versions in one pass:
 * `movesBetween` for each of 500 targets would take seconds.
 */
export function countMovesOfRollbacks(present: Deployment): ReadonlyMap<string, number> {
  const now = installedContainers(present);
  const equal = new Set<string>();
  const counts = new Map<string, number>();
  for (const { id, containers, newContainers } of installedVersions(present)) {
    for (const then of [...containers, ...newContainers]) {
      const container = now.get(then.name);
      if (container?.image === then.image && container.checksum === then.checksum) equal.add(then.name);
      else equal.delete(then.name);
    }
    counts.set(id, now.size - equal.size);
  }
  return counts;
}
