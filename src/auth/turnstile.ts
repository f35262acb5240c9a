// Lets so many pieces of work run at once; the others wait their turn.

export type Turnstile = <T>(work: () => Promise<T>) => Promise<T>;

export function createTurnstile(most: number): Turnstile {
  let inside = 0;
  const waiting: (() => void)[] = [];

  return async (work) => {
    if (inside < most) inside += 1;
    else await new Promise<void>((enter) => waiting.push(enter));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) inside -= 1;
      else next();
    }
  };
}
