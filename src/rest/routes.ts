// Ways through the tree: where a path leads, and everything there is.
import type { Items, Operation, Resource } from './resource.ts';

/** Where a path leads: the chain of data segments on the way, and the resource or operation at its end. */
export type Match = {
  /** The path with its data segments as `{param}`. */
  readonly route: string;
  readonly steps: readonly { readonly items: Items; readonly segment: string }[];
  readonly resource: Resource;
  /** Set when the path names an operation of the resource, or the method does. */
  readonly operation: Operation | undefined;
};

export function match(root: Resource, segments: readonly string[], method: string): Match | undefined {
  let at = root;
  const route: string[] = [];
  const steps: { items: Items; segment: string }[] = [];
  for (const [index, segment] of segments.entries()) {
    const child = own(at.resources, segment);
    const operation = child ? undefined : own(at.operations, segment);
    if (operation !== undefined) {
      const isLast = index === segments.length - 1;
      return isLast ? { route: [...route, segment].join('/'), steps, resource: at, operation } : undefined;
    }
    const items = child ? undefined : at.items.find((candidate) => candidate.accepts(segment));
    const next = child ?? items?.resource;
    if (next === undefined) return undefined;
    if (items) steps.push({ items, segment });
    route.push(items ? `{${items.param}}` : segment);
    at = next;
  }
  return {
    route: route.join('/'),
    steps,
    resource: at,
    operation: method === 'POST' ? at.onPost : undefined,
  };
}

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

export type Entry = {
  readonly route: string;
  /** What the data segments of the route stand for, in their order. */
  readonly items: readonly Items[];
  readonly resource: Resource;
  readonly operation: Operation | undefined;
};

/** Every resource and operation of the tree, for whoever must look at all of them. */
export function* walk(root: Resource, route = '', items: readonly Items[] = []): Generator<Entry> {
  const below = (name: string) => (route === '' ? name : `${route}/${name}`);
  yield { route, items, resource: root, operation: undefined };
  if (root.onPost) yield { route, items, resource: root, operation: root.onPost };
  for (const [name, operation] of Object.entries(root.operations)) {
    yield { route: below(name), items, resource: root, operation };
  }
  for (const [name, child] of Object.entries(root.resources)) yield* walk(child, below(name), items);
  for (const item of root.items) yield* walk(item.resource, below(`{${item.param}}`), [...items, item]);
}
