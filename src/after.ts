// Going on: at once with a value, later with the promise of one.

/** Even the shortest wait takes as long as many a step. */
export function after<T, R>(value: T | Promise<T>, goOn: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}
