// REST resources of the catalog: `services`, its folders and services, and the operations that change them.
import * as z from 'zod';
import type { Caller } from '../lib/caller.ts';
import { ServiceError } from '../lib/errors.ts';
import { type Json, SharedJson, toTexts } from '../lib/json.ts';
import { answerObject, time } from '../rest/answer.ts';
import { definedOnly } from '../rest/fields.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Items, type Resource, items, resource } from '../rest/resource.ts';
import type { ReadableStore } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { CatalogCache } from './catalog-cache.ts';
import {
  type CatalogLimits,
  type Folder,
  type Service,
  type ServiceAccess,
  type ServiceChange,
  type ServiceId,
  accesses,
  createFolder,
  createService,
  deleteFolder,
  deleteService,
  editService,
  fileNameOf,
  findFolder,
  folderOrServiceNotFound,
  mayList,
  pathOfService,
  rootFolder,
  serviceInFolder,
  unknownFolder,
} from './catalog.ts';
import { createFields, editFields, folderFields } from './fields.rest.ts';
import { audienceOf } from './listing.ts';
import { folderView, rootView } from './pages/browse.ts';
import { type ServiceViewOptions, serviceView } from './pages/service.ts';

const serviceAnswer = answerObject('Service', 'A service of the catalog.', {
  folderName: z.string().describe('The folder, or / for the root.'),
  serviceName: z.string(),
  type: z.string(),
  description: z.string(),
  capabilities: z.string().describe('Names separated by commas.'),
  parentType: z.string().describe('Empty for a service of its own.'),
  url: z
    .string()
    .nullable()
    .describe('The address of the service. Null: the catalog derives it from the name.'),
  access: z.enum(accesses).describe('Who sees the service.'),
  createdAt: time,
  updatedAt: time,
});

const contents = {
  folders: z.array(z.string()).describe('The names of the folders that the caller may see.'),
  services: z.array(serviceAnswer).describe('The services that the caller may see.'),
};

const catalogAnswer = answerObject('Catalog', 'The root of the catalog.', {
  folderName: z.literal('/'),
  ...contents,
});

const folderAnswer = answerObject('Folder', 'A folder of the catalog.', {
  folderName: z.string(),
  description: z.string(),
  ...contents,
  folders: z.array(z.string()).describe('Always empty: folders have one level.'),
});

type CatalogOptions = ServiceViewOptions & {
  readonly store: ReadableStore;
  readonly catalogCache: CatalogCache;
  readonly limits: CatalogLimits;
  /** Runs in the update that makes the change. */
  readonly notify: (transaction: Transaction, change: ServiceChange, id: ServiceId, at: number) => void;
  readonly resources: Record<string, Resource>;
  readonly serviceResources: Record<string, Resource<Service>>;
};

export function catalogResource(options: CatalogOptions): Resource {
  const { catalogCache } = options;
  const service = resource<Service>({
    title: 'Service',
    titleOf: fileNameOf,
    description: 'One service of the catalog.',
    access: 'member',
    answer: serviceAnswer,
    read: ({ subject }) => subject,
    view: (page) => serviceView(options, page),
    resources: options.serviceResources,
    operations: { edit: editOperation(options), delete: deleteOperation(options) },
  });
  const folder = resource<Folder>({
    title: 'Folder',
    titleOf: ({ folderName }) => folderName,
    description: 'A folder of the catalog and the services in it.',
    access: 'member',
    answer: folderAnswer,
    read: ({ subject, caller }) =>
      listingJson(options, subject.folderName, caller, () => ({
        ...(findFolder(options.store, subject.folderName) ?? subject),
        folders: [],
      })),
    view: (page) => folderView(options, page),
    operations: { deleteFolder: deleteFolderOperation() },
    items: [serviceItems<Folder>(options, service, ({ folderName }) => folderName)],
  });
  return resource({
    title: 'Services',
    description: 'The root of the service catalog: its folders and services.',
    access: 'member',
    answer: catalogAnswer,
    read: ({ caller }) =>
      listingJson(options, rootFolder, caller, () => ({
        folderName: rootFolder,
        folders: catalogCache.listing(audienceOf(caller)).folders,
      })),
    view: (page) => rootView(options, page),
    resources: options.resources,
    operations: {
      createFolder: createFolderOperation(options),
      createService: createServiceOperation(options),
    },
    items: [serviceItems(options, service, () => rootFolder), folderItems(options, folder)],
  });
}

function folderItems(options: CatalogOptions, folder: Resource<Folder>): Items {
  return items({
    param: 'folder',
    find: (_root, segment, caller) => {
      const found = visibleFolder(options, segment, caller);
      if (!found) throw folderOrServiceNotFound();
      return found;
    },
    resource: folder,
  });
}

function serviceItems<S>(
  { store }: CatalogOptions,
  service: Resource<Service>,
  folderNameOf: (subject: S) => string,
): Items<S> {
  return items<S, Service>({
    param: 'service',
    parts: ['serviceName', 'type'],
    pattern: /^[^.]*[.].*$/,
    find: (subject, segment, caller) => {
      const found = serviceInFolder(store, folderNameOf(subject), segment);
      if (!found || !mayList(found, caller)) throw folderOrServiceNotFound();
      return found;
    },
    resource: service,
  });
}

const allServices = { name: 'Show all services', path: ['services'] };

function createFolderOperation({ limits }: CatalogOptions): Operation {
  return operation({
    title: 'Create folder',
    description: 'Creates an empty folder.',
    access: 'publisher',
    fields: folderFields,
    run: async ({ values, update }) => {
      const target = `services/${values.folderName}`;
      await update((transaction) => createFolder(transaction, values, limits), { target });
      const link = { name: 'Open the folder', path: ['services', values.folderName] };
      return succeeded(`The folder ${values.folderName} was created.`, link);
    },
  });
}

function deleteFolderOperation(): Operation<Folder> {
  return operation<Folder>({
    title: 'Delete folder',
    description: 'Deletes the folder, which must be empty.',
    access: 'publisher',
    isDestructive: true,
    run: async ({ subject, update }) => {
      await update((transaction) => deleteFolder(transaction, subject));
      return succeeded(`The folder ${subject.folderName} was deleted.`, allServices);
    },
  });
}

function createServiceOperation(options: CatalogOptions): Operation {
  const { limits, notify, catalogCache } = options;
  return operation({
    title: 'Create service',
    description: 'Adds a service to the catalog.',
    access: 'publisher',
    fields: createFields,
    suggest: (_subject, caller) => {
      const { folders, services } = catalogCache.listing(audienceOf(caller));
      return { folderName: folders, type: [...new Set(services.map(({ type }) => type))] };
    },
    check: ({ values: { folderName = rootFolder }, caller }) => {
      const exists = folderName === rootFolder || visibleFolder(options, folderName, caller) !== undefined;
      return { problems: exists ? [] : [unknownFolder(folderName)] };
    },
    run: async ({ values, caller, update }) => {
      const { folderName = rootFolder, serviceName, type, url = null, ...traits } = values;
      requireMaySetAccess(caller, values.access);
      const id = { folderName, serviceName, type };
      await update(
        (transaction, at) => {
          createService(transaction, { ...id, ...traits, url }, { at, limits });
          notify(transaction, 'Created', id, at);
        },
        { target: `services/${pathOfService(id)}` },
      );
      const link = { name: 'Open the service', path: ['services', ...pathOfService(id).split('/')] };
      return succeeded(`The service ${pathOfService(id)} was created.`, link);
    },
  });
}

function editOperation({ limits, notify }: CatalogOptions): Operation<Service> {
  return operation<Service, typeof editFields>({
    title: 'Edit service',
    description: 'Changes the given fields. An empty text clears the field.',
    access: 'publisher',
    fields: editFields,
    present: (service) => ({
      description: service.description,
      capabilities: service.capabilities,
      parentType: service.parentType,
      url: service.url ?? '',
      access: service.access,
      version: String(service.updatedAt),
    }),
    run: async ({ subject, values, caller, update }) => {
      requireMaySetAccess(caller, values.access);
      const { url, version, ...rest } = values;
      const change = { ...definedOnly(rest), ...(url !== undefined && { url: url === '' ? null : url }) };
      await update((transaction, at) => {
        const isChanged = editService(transaction, subject, change, { at, limits, version });
        if (isChanged) notify(transaction, 'Updated', subject, at);
      });
      const link = { name: 'Open the service', path: ['services', ...pathOfService(subject).split('/')] };
      return succeeded(`The service ${fileNameOf(subject)} was changed.`, link);
    },
  });
}

function deleteOperation({ notify }: CatalogOptions): Operation<Service> {
  return operation<Service>({
    title: 'Delete service',
    description: 'Removes the service from the catalog.',
    access: 'publisher',
    isDestructive: true,
    warning: () => 'The service is removed from the catalog at once, and its webhooks are notified.',
    run: async ({ subject, update }) => {
      await update((transaction, at) => {
        deleteService(transaction, subject);
        notify(transaction, 'Deleted', subject, at);
      });
      const { folderName } = subject;
      const folder = { name: 'Open the folder', path: ['services', folderName] };
      return succeeded(
        `The service ${fileNameOf(subject)} was deleted.`,
        folderName === rootFolder ? allServices : folder,
      );
    },
  });
}

function visibleFolder(
  { store, catalogCache }: CatalogOptions,
  name: string,
  caller: Caller,
): Folder | undefined {
  const isVisible = catalogCache.listing(audienceOf(caller)).byFolder.has(name);
  return isVisible ? findFolder(store, name) : undefined;
}

function requireMaySetAccess(caller: Caller, access: ServiceAccess | undefined): void {
  if (access === 'administrators' && caller?.role !== 'administrator') {
    throw new ServiceError('forbidden', 'This needs the role administrator.', {
      problems: [{ field: 'access', message: 'only an administrator may set administrators.' }],
    });
  }
}

/** The services of a folder. A large catalog is serialized once for all callers of an audience. */
function listingJson(
  { catalogCache }: CatalogOptions,
  folderName: string,
  caller: Caller,
  head: () => { readonly [key: string]: Json },
): SharedJson {
  const audience = audienceOf(caller);
  const services = () => catalogCache.listing(audience).byFolder.get(folderName) ?? [];
  return new SharedJson(
    () => ({ ...head(), services: services() }),
    (space) =>
      catalogCache.content(`json ${space} ${audience} ${folderName}`, () =>
        toTexts({ ...head(), services: [] }, services(), space),
      ),
  );
}
