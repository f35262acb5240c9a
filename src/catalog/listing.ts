// The part of the catalog that one kind of caller may see, sorted: root first, then by folder, name and type.
import type { Caller } from '../caller.ts';
import { type Folder, type Service, type ServiceAccess, mayList, rootFolder } from './catalog.ts';

export type Listing = {
  readonly folders: readonly string[];
  readonly services: readonly Service[];
  readonly byFolder: ReadonlyMap<string, readonly Service[]>;
};

/** All callers of one audience see the same services, so they share cached listings. */
export type Audience = ServiceAccess;

export function audienceOf(caller: Caller): Audience {
  if (caller === undefined) return 'public';
  return caller.role === 'administrator' ? 'administrators' : 'organization';
}

const typicalCaller: Record<Audience, Caller> = {
  public: undefined,
  organization: { username: '', role: 'member' },
  administrators: { username: '', role: 'administrator' },
};

export function listCatalog(
  folders: Iterable<Folder>,
  services: Iterable<Service>,
  audience: Audience,
): Listing {
  const caller = typicalCaller[audience];
  const byFolder = new Map<string, Service[]>([[rootFolder, []]]);
  for (const folder of folders) byFolder.set(folder.folderName, []);
  const hidden = new Set<string>();
  for (const service of services) {
    if (mayList(service, caller)) byFolder.get(service.folderName)?.push(service);
    else hidden.add(service.folderName);
  }
  // Only a folder whose services are all hidden is hidden. An empty folder is visible.
  for (const name of hidden)
    if (name !== rootFolder && byFolder.get(name)?.length === 0) byFolder.delete(name);

  const names = [...byFolder.keys()].filter((name) => name !== rootFolder).sort(byCodePoint);
  for (const list of byFolder.values()) {
    list.sort((a, b) => byCodePoint(a.serviceName, b.serviceName) || byCodePoint(a.type, b.type));
  }
  return {
    folders: names,
    services: [rootFolder, ...names].flatMap((name) => byFolder.get(name) ?? []),
    byFolder,
  };
}

/** The operators < and > compare UTF-16 units, which sorts U+10000 and above before U+E000. */
export function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const difference = rank(a.charCodeAt(index)) - rank(b.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates rank above all other units, because they encode the highest code points. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
