// Groups of equal keys, and results that are kept with what they were computed from.

/** The groups have the order of the input. Node 20 has no `Map.groupBy`. */
export function groupBy<K, T>(all: Iterable<T>, keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const one of all) {
    const group = groups.get(keyOf(one));
    if (group) group.push(one);
    else groups.set(keyOf(one), [one]);
  }
  return groups;
}

/** Computes the result for an object once. */
export function oncePer<K extends object, V>(compute: (from: K) => V): (from: K) => V {
  const results = new WeakMap<K, V>();
  return (from) => {
    const known = results.get(from);
    if (known !== undefined) return known;
    const result = compute(from);
    results.set(from, result);
    return result;
  };
}
