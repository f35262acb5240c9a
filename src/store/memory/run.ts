// Promises of the memory store: its methods do their work when they are called, and their promises are settled at once.

/** Calls the function now. The promise is rejected if it throws. */
export function runNow<T>(act: () => T): Promise<T> {
  return new Promise((resolve) => {
    resolve(act());
  });
}

/** The result of writes that have been performed. */
export const done = Promise.resolve();
