// Lets so many pieces of work run at once; the others wait their turn. Whoever brings many does not hold up those who bring few.
import { ServiceError } from '../errors.ts';

/** Work of the same `lane` waits in one line, and the lines take turns. */
export type FairLimiter = <T>(lane: string, work: () => Promise<T>) => Promise<T>;

export type FairLimits = {
  readonly inside: number;
  /** In one line, and in all of them. */
  readonly inLane: number;
  readonly waiting: number;
};

export function createFairLimiter(limits: FairLimits): FairLimiter {
  let inside = 0;
  let waiting = 0;
  /** Whose turn is next comes first. */
  const lanes = new Map<string, (() => void)[]>();

  function wait(lane: string): Promise<void> {
    const line = lanes.get(lane) ?? [];
    if (waiting >= limits.waiting || line.length >= limits.inLane)
      throw new ServiceError('too-many-requests', 'Too many passwords to work on.', { retryAfterSeconds: 5 });
    waiting += 1;
    lanes.set(lane, line);
    return new Promise((enter) => line.push(enter));
  }

  function callNext(): void {
    const [first] = lanes;
    if (first === undefined) {
      inside -= 1;
      return;
    }
    const [lane, line] = first;
    const enter = line.shift();
    waiting -= 1;
    lanes.delete(lane);
    if (line.length > 0) lanes.set(lane, line);
    enter?.();
  }

  return async (lane, work) => {
    if (inside < limits.inside) inside += 1;
    else await wait(lane);
    try {
      return await work();
    } finally {
      callNext();
    }
  };
}
