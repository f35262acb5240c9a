// Going on with what may take a while.

/** Goes on at once where there is nothing to wait for: even the shortest wait takes as long as many a step. */
export function after<T, R>(value: T | Promise<T>, goOn: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}
