// Applies strategic merge patches, the only ones that Steward, kubectl apply and the tests send.
import { type Fields, isFields, textOf } from './objects.ts';
import { StatusError, badRequest, unsupportedMediaType } from './status-error.ts';

const strategic = 'application/strategic-merge-patch+json';

/** Returns the patched object; `original` does not change. */
export function applyPatch(original: Fields, patch: unknown, contentType: string): Fields {
  if (contentType !== strategic) throw unsupportedMediaType([strategic]);
  if (!isFields(patch)) {
    throw badRequest('json: cannot unmarshal array into Go value of type map[string]interface {}');
  }
  return mergeStrategically(original, patch);
}

const keysOfLists: Record<string, string> = {
  containers: 'name',
  initContainers: 'name',
  ephemeralContainers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
  volumeDevices: 'devicePath',
  imagePullSecrets: 'name',
  conditions: 'type',
  addresses: 'type',
  ownerReferences: 'uid',
  hostAliases: 'ip',
  podIPs: 'ip',
  topologySpreadConstraints: 'topologyKey',
  secrets: 'name',
};

function keyOfList(name: string, items: unknown[]): string | undefined {
  if (name !== 'ports') return keysOfLists[name];
  return items.some((item) => isFields(item) && 'containerPort' in item) ? 'containerPort' : 'port';
}

function mergeStrategically(original: Fields, patch: Fields): Fields {
  const { $patch: directive, $retainKeys: kept, ...rest } = patch;
  if (directive === 'delete') return {};
  const merged: Fields = directive === 'replace' ? {} : { ...original };
  if (Array.isArray(kept)) {
    for (const name of Object.keys(merged)) if (!kept.includes(name)) Reflect.deleteProperty(merged, name);
  }
  for (const [name, value] of Object.entries(rest)) {
    const [, order] = /^\$setElementOrder\/(.+)$/.exec(name) ?? [];
    const present = merged[name];
    if (order !== undefined) {
      if (!(order in rest)) merged[order] = mergeList(order, merged[order], [], value as unknown[]);
    } else if (value === null) Reflect.deleteProperty(merged, name);
    else if (Array.isArray(value)) {
      merged[name] = mergeList(
        name,
        present,
        value,
        rest[`$setElementOrder/${name}`] as unknown[] | undefined,
      );
    } else if (isFields(value)) merged[name] = mergeStrategically(isFields(present) ? present : {}, value);
    else merged[name] = value;
  }
  return merged;
}

function mergeList(name: string, original: unknown, patch: unknown[], order?: unknown[]): unknown[] {
  const present: unknown[] = Array.isArray(original) ? original : [];
  const key = keyOfList(name, [...present, ...patch]);
  if (key === undefined) return order === undefined ? patch : present;
  const idOf = (item: unknown): unknown => {
    if (!isFields(item) || item[key] === undefined) {
      throw new StatusError(500, '', `map: ${textOf(item)} does not contain declared merge key: ${key}`);
    }
    return item[key];
  };
  const merged = new Map(present.map((item) => [idOf(item), item as Fields]));
  for (const item of patch as Fields[]) {
    if (item.$patch === 'delete') merged.delete(idOf(item));
    else merged.set(idOf(item), mergeStrategically(merged.get(idOf(item)) ?? {}, item));
  }
  return inOrder(merged, present.map(idOf), (order ?? patch).map(idOf));
}

/**
 * Items of the patch come in its order. Other items come after them, unless they were before them in the original
 * list.
 */
function inOrder(merged: Map<unknown, Fields>, before: unknown[], asked: unknown[]): Fields[] {
  const named = asked.filter((id) => merged.has(id));
  const others = before.filter((id) => merged.has(id) && !asked.includes(id));
  const ids: unknown[] = [];
  while (named.length > 0 && others.length > 0) {
    const position = before.indexOf(named[0]);
    ids.push(position >= 0 && before.indexOf(others[0]) < position ? others.shift() : named.shift());
  }
  return [...ids, ...named, ...others].map((id) => merged.get(id) ?? {});
}
