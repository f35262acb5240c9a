// Applies the patches of Kubernetes: strategic merge, JSON merge (RFC 7386) and JSON Patch (RFC 6902).
import { type Fields, isFields, textOf } from './objects.ts';
import { StatusError, badRequest, unprocessable, unsupportedMediaType } from './status-error.ts';

const strategic = 'application/strategic-merge-patch+json';
const merge = 'application/merge-patch+json';
const json = 'application/json-patch+json';

/** Returns the patched object; `original` does not change. */
export function applyPatch(original: Fields, patch: unknown, contentType: string): Fields {
  if (contentType === json) return applyOperations(original, patch);
  if (contentType !== strategic && contentType !== merge) {
    throw unsupportedMediaType([json, merge, strategic]);
  }
  if (!isFields(patch) && contentType === merge) throw unprocessable(textOf(patch));
  if (!isFields(patch))
    throw badRequest('json: cannot unmarshal array into Go value of type map[string]interface {}');
  return contentType === strategic ? mergeStrategically(original, patch) : mergePlainly(original, patch);
}

function mergePlainly(original: unknown, patch: Fields): Fields {
  const merged = isFields(original) ? { ...original } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(merged, name);
    else merged[name] = isFields(value) ? mergePlainly(merged[name], value) : value;
  }
  return merged;
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
    const [, order, deletedFrom] =
      /^(?:\$setElementOrder\/(.+)|\$deleteFromPrimitiveList\/(.+))$/.exec(name) ?? [];
    const present = merged[name];
    if (deletedFrom !== undefined) {
      const [list, gone] = [merged[deletedFrom], value as unknown[]];
      if (Array.isArray(list)) merged[deletedFrom] = list.filter((item) => !gone.includes(item));
    } else if (order !== undefined) {
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
  if (name === 'finalizers') return [...new Set([...present, ...patch])];
  const key = keyOfList(name, [...present, ...patch]);
  if (key === undefined) return order === undefined ? patch : present;
  if (patch.some((item) => isFields(item) && item.$patch === 'replace' && !(key in item))) {
    return patch.filter((item) => !(isFields(item) && item.$patch === 'replace'));
  }
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

type Operation = { op: string; path: string; value?: unknown };

function applyOperations(original: Fields, patch: unknown): Fields {
  if (!Array.isArray(patch)) {
    throw badRequest('json: cannot unmarshal object into Go value of type jsonpatch.Patch');
  }
  const patched = structuredClone(original);
  for (const operation of patch as Operation[]) operate(patched, operation);
  return patched;
}

function operate(document: Fields, { op, path, value }: Operation): void {
  const steps = path
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = steps.pop() ?? '';
  let holder: unknown = document;
  for (const step of steps) holder = (holder as Fields | undefined)?.[step];
  if (typeof holder !== 'object' || holder === null) throw unprocessable();
  const fields = holder as Fields;
  if (op === 'add') {
    if (!Array.isArray(holder)) fields[last] = value;
    else holder.splice(last === '-' ? holder.length : Number(last), 0, value);
    return;
  }
  if (!(last in fields) && op !== 'test') throw unprocessable();
  if (op === 'replace') fields[last] = value;
  else if (op === 'remove') {
    if (Array.isArray(holder)) holder.splice(Number(last), 1);
    else Reflect.deleteProperty(fields, last);
  } else if (op !== 'test') throw unprocessable();
  else if (textOf(fields[last] ?? null) !== textOf(value ?? null)) {
    throw unprocessable();
  }
}
