// What one kind of caller sees of the catalog, in the order it is listed (contract 7): root first, then by folder, name, type.
import type { Caller } from '../caller.ts';
import { type Folder, type Service, type ServiceAccess, mayList, rootFolder } from './catalog.ts';

export type Listing = {
  /** Names, the root not among them. */
  readonly folders: readonly string[];
  readonly services: readonly Service[];
  /** By folder name, the root included. */
  readonly byFolder: ReadonlyMap<string, readonly Service[]>;
};

/** Callers who see the same: named by the widest access they have. */
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
  // A folder that holds only what the caller may not see is not there for them.
  for (const name of hidden)
    if (name !== rootFolder && byFolder.get(name)?.length === 0) byFolder.delete(name);

  const names = [...byFolder.keys()].filter((name) => name !== rootFolder).sort(byCodePoint);
  for (const group of byFolder.values()) {
    group.sort((a, b) => byCodePoint(a.serviceName, b.serviceName) || byCodePoint(a.type, b.type));
  }
  return {
    folders: names,
    services: [rootFolder, ...names].flatMap((name) => byFolder.get(name) ?? []),
    byFolder,
  };
}

/** Strings compare by UTF-16 unit; this compares by code point, which differs beyond the basic plane. */
export function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const difference = rank(a.charCodeAt(index)) - rank(b.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above every other unit. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
