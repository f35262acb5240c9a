// The path of a resource or an operation as OpenAPI writes it, such as `/admin/services/{serviceName}.{type}/edit`.
import type { Entry, Items } from './resource.ts';

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
