// Folders and services, and the rules for changing them.
import { SecretUrl, notAudited } from '../lib/audit-fields.ts';
import type { Caller } from '../lib/caller.ts';
import { invalid, type Problem, requireVersion, ServiceError } from '../lib/errors.ts';
import { type Cell, type Reader, type Table, updated } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';
import { type ConfiguredState, type Definition, noDefinition } from './definition.ts';

export type ServiceChange = 'Created' | 'Updated' | 'Deleted';

/** From the largest audience to the smallest. */
export const accesses = ['public', 'organization', 'administrators'] as const;

export type ServiceAccess = (typeof accesses)[number];

/** Who sees a service, in words. */
export const audiences: Readonly<Record<ServiceAccess, string>> = {
  public: 'everyone',
  organization: 'signed-in users',
  administrators: 'administrators only',
};

export type Folder = { readonly folderName: string; readonly description: string };

export type ServiceId = { readonly folderName: string; readonly serviceName: string; readonly type: string };

type ServiceTraits = {
  readonly description: string;
  readonly capabilities: string;
  readonly parentType: string;
  readonly url: string | null;
  readonly access: ServiceAccess;
  readonly definition: Definition;
  /** The catalogs for clients leave a stopped service out. */
  readonly configuredState: ConfiguredState;
};

/** What SOAP says of a service, in the order of the WSDL. */
export const soapFields = ['name', 'type', 'url', 'parentType', 'capabilities', 'description'] as const;

export type SoapField = (typeof soapFields)[number];

/** The element of a field. */
export function soapElement(field: SoapField): string {
  return field.charAt(0).toUpperCase() + field.slice(1);
}

/** The traits that answers show by themselves. */
export type OwnTrait = Exclude<keyof ServiceTraits, 'definition' | 'configuredState'>;

type NewService = ServiceId & Partial<ServiceTraits>;

export type Service = ServiceId & ServiceTraits & { readonly createdAt: number; readonly updatedAt: number };

export function isStarted({ configuredState }: Service): boolean {
  return configuredState === 'STARTED';
}

/** The root holds services, but is not stored or listed as a folder. */
export const rootFolder = '/';

// The keys make names unique, ignoring case. A lookup compares the exact name as well.
export const folders: Table<Folder> = {
  name: 'folders',
  keyOf: (folder) => folder.folderName.toLowerCase(),
  defaults: {},
  bytesOf: bytesOfFolder,
  auditFields: ({ folderName, description }) => ({ folderName, description }),
};
export const services: Table<Service> = {
  name: 'services',
  keyOf: keyOfService,
  defaults: { definition: noDefinition, configuredState: 'STARTED' },
  bytesOf: bytesOfService,
  auditFields: ({ definition, createdAt: _createdAt, updatedAt: _updatedAt, ...fields }) => ({
    ...fields,
    url: fields.url === null ? null : new SecretUrl(fields.url),
    service: textOf(definition),
  }),
};
const catalogLoaded: Cell<boolean> = {
  name: 'catalogLoaded',
  initial: false,
  auditFields: notAudited,
};

export function bytesOfService(service: NewService): number {
  const { access: _access, configuredState: _state, definition, ...fields } = service;
  const texts = [...Object.values<unknown>(fields), textOf(definition)];
  return texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? xmlBytes(text) : 0), 0);
}

function textOf(definition = noDefinition): string {
  return definition === noDefinition || Object.keys(definition).length === 0
    ? ''
    : JSON.stringify(definition);
}

function bytesOfFolder({ folderName, description }: Folder): number {
  return xmlBytes(folderName) + xmlBytes(description);
}

/** The size of the text in an XML document, which escapes `&`, `<` and `>`. */
function xmlBytes(value: string): number {
  let bytes = Buffer.byteLength(value);
  for (let index = 0; index < value.length; index += 1) {
    const unit = value.charCodeAt(index);
    if (unit === 0x26 || unit === 0x3c || unit === 0x3e) bytes += 4;
  }
  return bytes;
}

export function keyOfService({ folderName, serviceName, type }: ServiceId): string {
  return `${folderName}/${serviceName}.${type}`.toLowerCase();
}

/** With the folder, as clients of the catalog know the service. */
export function fullNameOf({ folderName, serviceName }: Omit<ServiceId, 'type'>): string {
  return folderName === rootFolder ? serviceName : `${folderName}/${serviceName}`;
}

/** A name may contain dots, a type may not. */
export function fileNameOf({ serviceName, type }: { serviceName: string; type: string }): string {
  return `${serviceName}.${type}`;
}

export function pathOfService(id: ServiceId): string {
  return id.folderName === rootFolder ? fileNameOf(id) : `${id.folderName}/${fileNameOf(id)}`;
}

export function serviceInFolder(reader: Reader, folderName: string, fileName: string): Service | undefined {
  const dot = fileName.lastIndexOf('.');
  return findService(reader, {
    folderName,
    serviceName: fileName.slice(0, dot),
    type: fileName.slice(dot + 1),
  });
}

export function addressOfService(
  { folderName, serviceName, type, url }: ServiceId & Pick<Service, 'url'>,
  baseUrl: string,
): string {
  const path = folderName === rootFolder ? [serviceName] : [folderName, serviceName];
  return url ?? [baseUrl, ...path.map(encodeURIComponent), type].join('/');
}

export function serviceAtPath(reader: Reader, path: string): Service | undefined {
  const slash = path.indexOf('/');
  const folderName = slash < 0 ? rootFolder : path.slice(0, slash);
  return serviceInFolder(reader, folderName, path.slice(slash + 1));
}

/** All callers of one audience see the same services, so they share cached listings. */
export function audienceOf(caller: Caller): ServiceAccess {
  if (caller === undefined) return 'public';
  return caller.role === 'administrator' ? 'administrators' : 'organization';
}

export function isListedFor(audience: ServiceAccess, { access }: Service): boolean {
  return accesses.indexOf(access) <= accesses.indexOf(audience);
}

export function mayList(service: Service, caller: Caller): boolean {
  return isListedFor(audienceOf(caller), service);
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

export type CatalogLimits = {
  /** Services, and likewise folders. */
  readonly MAX_SERVICES: number;
};

/**
 * The texts of all folders and services may have this size for each service allowed, as XML: 32 MiB by default. The SOAP
 * answers are in memory.
 */
const bytesPerService = 672;

/** Called after a row was added or has grown: the update that calls it fails. */
function requireWithin(transaction: Transaction, limits: CatalogLimits): void {
  const problem = findExceededLimit(limits, {
    folders: transaction.count(folders),
    services: transaction.count(services),
    bytes: transaction.bytes(folders) + transaction.bytes(services),
  });
  if (problem !== undefined) throw new ServiceError('conflict', `The catalog is full: ${problem}`);
}

export function findExceededLimit(
  { MAX_SERVICES }: CatalogLimits,
  size: { folders: number; services: number; bytes: number },
): string | undefined {
  if (size.services > MAX_SERVICES) return `MAX_SERVICES allows ${MAX_SERVICES} services.`;
  if (size.folders > MAX_SERVICES) return `MAX_SERVICES allows ${MAX_SERVICES} folders.`;
  const maxBytes = MAX_SERVICES * bytesPerService;
  if (size.bytes > maxBytes) return `MAX_SERVICES allows ${maxBytes} bytes.`;
  return undefined;
}

export function createFolder(transaction: Transaction, folder: Folder, limits: CatalogLimits): void {
  const taken = transaction.get(folders, folders.keyOf(folder));
  if (taken) throw new ServiceError('conflict', `A folder named ${folder.folderName} exists already.`);
  transaction.put(folders, folder);
  requireWithin(transaction, limits);
}

export function deleteFolder(transaction: Transaction, { folderName }: Folder): void {
  const folder = findFolder(transaction, folderName);
  if (!folder) throw folderOrServiceNotFound();
  for (const service of transaction.all(services)) {
    if (service.folderName === folderName)
      throw new ServiceError('conflict', `The folder ${folderName} is not empty.`);
  }
  transaction.remove(folders, folders.keyOf(folder));
}

export function createService(
  transaction: Transaction,
  service: NewService,
  { at, limits }: { at: number; limits: CatalogLimits },
): void {
  const { folderName } = service;
  if (folderName !== rootFolder && !findFolder(transaction, folderName))
    throw invalid([unknownFolder(folderName)]);
  const taken = transaction.get(services, keyOfService(service));
  if (taken)
    throw new ServiceError(
      'conflict',
      `A service named ${fileNameOf(service)} exists already in ${folderName}.`,
    );
  transaction.put(services, newService(service, at));
  requireWithin(transaction, limits);
}

function newService(service: NewService, at: number): Service {
  const { folderName, serviceName, type, description = '', capabilities = '', parentType = '' } = service;
  const { url = null, access = 'public', definition = noDefinition, configuredState = 'STARTED' } = service;
  // One literal instead of two spreads gives all services the same hidden class in V8, which takes two thirds of
  // the memory. Answers have the fields in this order.
  return {
    folderName,
    serviceName,
    type,
    description,
    capabilities,
    parentType,
    url,
    access,
    definition,
    configuredState,
    createdAt: at,
    updatedAt: at,
  };
}

/** Returns whether it has changed something. */
export function editService(
  transaction: Transaction,
  id: ServiceId,
  change: Partial<ServiceTraits>,
  { at, limits, version }: { at: number; limits: CatalogLimits; version?: number | undefined },
): boolean {
  const service = findService(transaction, id);
  if (!service) throw folderOrServiceNotFound();
  requireVersion('The service was', service.updatedAt, version);
  const before = transaction.bytes(services);
  const edited = updated(service, change, at);
  if (edited === service) return false;
  transaction.put(services, edited);
  if (transaction.bytes(services) > before) requireWithin(transaction, limits);
  return true;
}

export function deleteService(transaction: Transaction, id: ServiceId): void {
  const service = findService(transaction, id);
  if (!service) throw folderOrServiceNotFound();
  transaction.remove(services, services.keyOf(service));
}

export function unknownFolder(folderName: string): Problem {
  return { field: 'folderName', message: `there is no folder named ${folderName}.` };
}

/** Also thrown if the caller may not see the folder or service: the error must not reveal that it exists. */
export function folderOrServiceNotFound(): ServiceError {
  return new ServiceError('not-found', 'There is no such folder or service.');
}

export type InitialCatalog = {
  readonly folders: readonly Folder[];
  readonly services: readonly NewService[];
};

/** The catalog has passed `findCatalogExcess`, and its names are unique. */
export function loadCatalog(transaction: Transaction, catalog: InitialCatalog, at: number): void {
  if (transaction.read(catalogLoaded)) return;
  for (const folder of catalog.folders) transaction.put(folders, folder);
  for (const service of catalog.services) transaction.put(services, newService(service, at));
  transaction.write(catalogLoaded, true);
}

export function findCatalogExcess(catalog: InitialCatalog, limits: CatalogLimits): string | undefined {
  let bytes = 0;
  for (const folder of catalog.folders) bytes += bytesOfFolder(folder);
  for (const service of catalog.services) bytes += bytesOfService(service);
  return findExceededLimit(limits, {
    folders: catalog.folders.length,
    services: catalog.services.length,
    bytes,
  });
}
