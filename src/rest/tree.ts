// The paths of a tree, each with its resource or operation.
import type { Access } from '../lib/caller.ts';
import type { AnswerSchema } from './answer.ts';
import type { Fields } from './fields.ts';
import type { Operation } from './operation.ts';
import type { Items, Resource } from './resource.ts';

export type Entry = {
  readonly route: string;
  readonly items: readonly Items[];
  readonly resource: Resource;
  readonly operation: Operation | undefined;
};

export function accessOf({ operation, resource }: Entry): Access {
  return (operation ?? resource).access;
}

export function answerOf({ operation, resource }: Entry): AnswerSchema {
  return (operation ?? resource).answer;
}

/** Whether the operation changes given fields of a thing and keeps the others. */
export function changesExisting({ route, operation, resource }: Entry): boolean {
  return operation !== undefined && (operation === resource.onPost || /\/(edit|update)$/.test(route));
}

export function fieldsOf({ operation, resource }: Entry): Fields {
  return (operation ?? resource).fields;
}

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

/** The path as OpenAPI writes it, such as `/admin/services/{serviceName}.{type}/edit`. */
export function pathTemplate(prefix: string, { route, items }: Entry): string {
  let passed = 0;
  const segments = route.split('/').map((segment) => {
    if (!segment.startsWith('{')) return segment;
    const item = items[passed];
    passed += 1;
    return item
      ? partsOf(item)
          .map((part) => `{${part}}`)
          .join('.')
      : segment;
  });
  return [prefix, ...segments].join('/').replace(/\/$/, '') || '/';
}

export function partsOf({ param, parts }: Items): readonly string[] {
  return parts ?? [param];
}
