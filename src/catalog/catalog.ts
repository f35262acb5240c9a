// Folders and services, and the rules for changing them (contract 4).
import type { Caller } from '../caller.ts';
import { type Problem, ServiceError, invalid } from '../errors.ts';
import type { Shape } from '../store/shape.ts';
import type { Cell, Reader, Table, Transaction } from '../store/transaction.ts';

export type ServiceChange = 'Created' | 'Updated' | 'Deleted';

/** Told of each change to a service, within the same update. */
export type OnServiceChange = (
  transaction: Transaction,
  change: ServiceChange,
  id: ServiceId,
  at: number,
) => void;

export const accesses = ['public', 'organization', 'administrators'] as const;

export type ServiceAccess = (typeof accesses)[number];

export type Folder = { readonly folderName: string; readonly description: string };

/** A service is identified by its folder, name and type together. */
export type ServiceId = { readonly folderName: string; readonly serviceName: string; readonly type: string };

export type ServiceTraits = {
  readonly description: string;
  /** A comma list. */
  readonly capabilities: string;
  readonly parentType: string;
  readonly url: string | null;
  readonly access: ServiceAccess;
};

export type Service = ServiceId & ServiceTraits & { readonly createdAt: number; readonly updatedAt: number };

/** The root holds services but is no folder of its own. */
export const rootFolder = '/';

// Names are unique but for case, yet looked up exactly.
export const folders: Table<Folder> = {
  name: 'folders',
  keyOf: (folder) => folder.folderName.toLowerCase(),
  shape: { folderName: 'text', description: 'text' } satisfies Shape<Folder>,
};
export const services: Table<Service> = {
  name: 'services',
  keyOf: keyOfService,
  shape: {
    folderName: 'text',
    serviceName: 'text',
    type: 'text',
    description: 'text',
    capabilities: 'text',
    parentType: 'text',
    url: 'text',
    access: 'text',
    createdAt: 'number',
    updatedAt: 'number',
  } satisfies Shape<Service>,
};
export const catalogLoaded: Cell<boolean> = { name: 'catalogLoaded', initial: false };

function keyOfService({ folderName, serviceName, type }: ServiceId): string {
  return `${folderName}/${serviceName}.${type}`.toLowerCase();
}

const nameRule =
  '1 to 128 characters, no blank at either end, no control characters and none of / \\ ? # % * : " < > |';

export const serviceNames = {
  pattern: /^(?!\s)(?!\.+$)[^\p{Cc}\p{Cs}\uFFFE\uFFFF/\\?#%*:"<>|]{1,128}(?<!\s)$/u,
  allowed: nameRule,
};
export const folderNames = {
  pattern:
    /^(?!\s)(?!(?:webhooks|createFolder|createService)$)[^\p{Cc}\p{Cs}\uFFFE\uFFFF/\\?#%*:"<>|.]{1,128}(?<!\s)$/iu,
  allowed: `${nameRule}, no dot, and not webhooks, createFolder or createService`,
};
export const serviceTypes = {
  pattern: /^[A-Za-z][A-Za-z0-9]{0,63}$/,
  allowed: 'a letter and up to 63 letters or digits',
};
export const longest = { description: 4000, capabilities: 1000 } as const;

/** How a service reads in a path: the last dot divides name and type. */
export function fileNameOf({ serviceName, type }: { serviceName: string; type: string }): string {
  return `${serviceName}.${type}`;
}

/** How a service is named outside its folder: `Folder/Name.Type`, at the root `Name.Type`. */
export function pathOfService(id: ServiceId): string {
  return id.folderName === rootFolder ? fileNameOf(id) : `${id.folderName}/${fileNameOf(id)}`;
}

/** By the name it has in a path: the last dot divides name and type. */
export function serviceInFolder(reader: Reader, folderName: string, fileName: string): Service | undefined {
  const dot = fileName.lastIndexOf('.');
  return findService(reader, {
    folderName,
    serviceName: fileName.slice(0, dot),
    type: fileName.slice(dot + 1),
  });
}

/** Its own address, or the one the catalog makes up for it. */
export function addressOfService({ folderName, serviceName, type, url }: Service, baseUrl: string): string {
  const path = folderName === rootFolder ? [serviceName] : [folderName, serviceName];
  return url ?? [baseUrl, ...path.map(encodeURIComponent), type].join('/');
}

export function serviceAtPath(reader: Reader, path: string): Service | undefined {
  const slash = path.indexOf('/');
  const folderName = slash < 0 ? rootFolder : path.slice(0, slash);
  return serviceInFolder(reader, folderName, path.slice(slash + 1));
}

export function mayList(service: Service, caller: Caller): boolean {
  switch (service.access) {
    case 'public':
      return true;
    case 'organization':
      return caller !== undefined;
    case 'administrators':
      return caller?.role === 'administrator';
  }
}

export function findFolder(reader: Reader, folderName: string): Folder | undefined {
  const folder = reader.get(folders, folderName.toLowerCase());
  return folder?.folderName === folderName ? folder : undefined;
}

function findService(reader: Reader, id: ServiceId): Service | undefined {
  const service = reader.get(services, keyOfService(id));
  const isExact =
    service?.folderName === id.folderName &&
    service.serviceName === id.serviceName &&
    service.type === id.type;
  return isExact ? service : undefined;
}

export function createFolder(transaction: Transaction, folder: Folder): void {
  const taken = transaction.get(folders, folders.keyOf(folder));
  if (taken) throw new ServiceError('conflict', `A folder named ${folder.folderName} exists already.`);
  transaction.put(folders, folder);
}

export function deleteFolder(transaction: Transaction, { folderName }: Folder): void {
  const folder = findFolder(transaction, folderName);
  if (!folder) throw noSuchThing();
  for (const service of transaction.all(services)) {
    if (service.folderName === folderName)
      throw new ServiceError('conflict', `The folder ${folderName} is not empty.`);
  }
  transaction.remove(folders, folders.keyOf(folder));
}

export function createService(
  transaction: Transaction,
  id: ServiceId,
  traits: ServiceTraits,
  at: number,
): void {
  if (id.folderName !== rootFolder && !findFolder(transaction, id.folderName)) {
    throw invalid([noSuchFolder(id.folderName)]);
  }
  const { folderName, serviceName, type } = id;
  const { description, capabilities, parentType, url, access } = traits;
  // Written out, so that all services have one shape: put together from two they take half as much again.
  const service = {
    folderName,
    serviceName,
    type,
    description,
    capabilities,
    parentType,
    url,
    access,
    createdAt: at,
    updatedAt: at,
  };
  const taken = transaction.get(services, services.keyOf(service));
  if (taken)
    throw new ServiceError(
      'conflict',
      `A service named ${fileNameOf(id)} exists already in ${id.folderName}.`,
    );
  transaction.put(services, service);
}

export function editService(
  transaction: Transaction,
  id: ServiceId,
  change: Partial<ServiceTraits>,
  at: number,
): void {
  const service = findService(transaction, id);
  if (!service) throw noSuchThing();
  transaction.put(services, { ...service, ...change, updatedAt: at });
}

export function deleteService(transaction: Transaction, id: ServiceId): void {
  const service = findService(transaction, id);
  if (!service) throw noSuchThing();
  transaction.remove(services, services.keyOf(service));
}

/** Only administrators hide a service from everybody else. */
export function refuseGrant(caller: Caller, access: ServiceAccess | undefined): void {
  if (access === 'administrators' && caller?.role !== 'administrator') {
    throw new ServiceError('forbidden', 'This needs the role administrator.', {
      problems: [{ field: 'access', message: 'only an administrator may set administrators.' }],
    });
  }
}

export function noSuchFolder(folderName: string): Problem {
  return { field: 'folderName', message: `there is no folder named ${folderName}.` };
}

/** Also what a caller is told who may not see the thing. */
export function noSuchThing(): ServiceError {
  return new ServiceError('not-found', 'There is no such folder or service.');
}

/** Trims the entries of a comma list and drops empty ones. */
export function tidyList(text: string): string {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .join(',');
}
