// REST edge of the catalog: `services`, its folders and services (contract 4).
import type { Caller } from '../caller.ts';
import { type Resource, items, operation, resource, success } from '../rest/resource.ts';
import type { Json } from '../lib/json.ts';
import { definedOnly } from '../rest/fields.ts';
import type { Store } from '../store/store.ts';
import type { Runtime } from '../runtime.ts';
import { createCatalogViews } from './pages/browse.ts';
import {
  type Folder,
  type Service,
  type OnServiceChange,
  createFolder,
  createService,
  deleteFolder,
  deleteService,
  editService,
  fileNameOf,
  findFolder,
  mayList,
  noSuchFolder,
  noSuchThing,
  refuseGrant,
  rootFolder,
  serviceInFolder,
} from './catalog.ts';
import { createFields, editFields, folderFields } from './fields.ts';
import type { CatalogCache } from './catalog-cache.ts';
import { audienceOf } from './listing.ts';
import type { ServiceViewOptions } from './pages/service.ts';

export type CatalogOptions = ServiceViewOptions & {
  store: Store;
  runtime: Runtime;
  catalogCache: CatalogCache;
  tell: OnServiceChange;
  /** What other features hang beneath `services`, and beneath each service. */
  resources: Record<string, Resource>;
  serviceResources: Record<string, Resource<Service>>;
};

export function catalogResource({
  store,
  runtime,
  catalogCache,
  tell,
  ...beneath
}: CatalogOptions): Resource {
  const views = createCatalogViews({ store, catalogCache, ...beneath });

  function contents(folderName: string, caller: Caller, folders: readonly string[]) {
    const listed = catalogCache.listing(audienceOf(caller)).byFolder.get(folderName) ?? [];
    return { folders, services: listed.map(toJson) };
  }

  const serviceResource = resource<Service>({
    title: 'Service',
    titleOf: fileNameOf,
    description: 'One service of the catalog.',
    access: 'member',
    read: ({ subject }) => toJson(subject),
    view: views.service,
    resources: beneath.serviceResources,
    operations: {
      edit: operation<Service, typeof editFields>({
        title: 'Edit service',
        description: 'Changes what is given; an empty text empties what was there.',
        access: 'publisher',
        effect: 'writes',
        fields: editFields,
        present: (service) => ({
          description: service.description,
          capabilities: service.capabilities,
          parentType: service.parentType,
          url: service.url ?? '',
          access: service.access,
        }),
        run: async ({ subject, values, caller }) => {
          const at = runtime.now();
          refuseGrant(caller, values.access);
          const { url, ...rest } = values;
          const change = { ...definedOnly(rest), ...(url !== undefined && { url: url === '' ? null : url }) };
          await store.update((transaction) => {
            editService(transaction, subject, change, at);
            tell(transaction, 'Updated', subject, at);
          });
          return success;
        },
      }),
      delete: operation<Service>({
        title: 'Delete service',
        description: 'Takes the service out of the catalog.',
        access: 'publisher',
        effect: 'writes',
        fields: {},
        run: async ({ subject }) => {
          const at = runtime.now();
          await store.update((transaction) => {
            deleteService(transaction, subject);
            tell(transaction, 'Deleted', subject, at);
          });
          return success;
        },
      }),
    },
  });

  const servicesOf = <S>(folderNameOf: (subject: S) => string) =>
    items<S, Service>({
      param: 'service',
      parts: ['serviceName', 'type'],
      pattern: '.*[.].*',
      find: (subject, segment, caller) => {
        const service = serviceInFolder(store, folderNameOf(subject), segment);
        if (!service || !mayList(service, caller)) throw noSuchThing();
        return service;
      },
      list: pageListsThem,
      resource: serviceResource,
    });

  const folderResource = resource<Folder>({
    title: 'Folder',
    titleOf: ({ folderName }) => folderName,
    description: 'A folder of the catalog and the services in it.',
    access: 'member',
    read: ({ subject, caller }) => ({ ...subject, ...contents(subject.folderName, caller, []) }),
    view: views.folder,
    operations: {
      deleteFolder: operation<Folder>({
        title: 'Delete folder',
        description: 'Deletes the folder, which must be empty.',
        access: 'publisher',
        effect: 'writes',
        fields: {},
        run: async ({ subject }) => {
          await store.update((transaction) => deleteFolder(transaction, subject));
          return success;
        },
      }),
    },
    items: [servicesOf<Folder>((folder) => folder.folderName)],
  });

  function visibleFolder(name: string, caller: Caller): Folder | undefined {
    return catalogCache.listing(audienceOf(caller)).byFolder.has(name) ? findFolder(store, name) : undefined;
  }

  const createFolderOperation = operation({
    title: 'Create folder',
    description: 'Creates an empty folder.',
    access: 'publisher',
    effect: 'writes',
    fields: folderFields,
    run: async ({ values }) => {
      await store.update((transaction) => createFolder(transaction, values));
      return success;
    },
  });

  const createServiceOperation = operation({
    title: 'Create service',
    description: 'Adds a service to the catalog.',
    access: 'publisher',
    effect: 'writes',
    fields: createFields,
    check: ({ values: { folderName = rootFolder }, caller }) => ({
      problems:
        folderName === rootFolder || visibleFolder(folderName, caller) ? [] : [noSuchFolder(folderName)],
    }),
    run: async ({ values, caller }) => {
      const { folderName = rootFolder, serviceName, type, url = null, ...traits } = values;
      refuseGrant(caller, values.access);
      const at = runtime.now();
      const id = { folderName, serviceName, type };
      await store.update((transaction) => {
        createService(transaction, id, { ...traits, url }, at);
        tell(transaction, 'Created', id, at);
      });
      return success;
    },
  });

  return resource({
    title: 'Services',
    description: 'The root of the service catalog: its folders and services.',
    access: 'member',
    read: ({ caller }) => ({
      folderName: rootFolder,
      ...contents(rootFolder, caller, catalogCache.listing(audienceOf(caller)).folders),
    }),
    view: views.root,
    resources: beneath.resources,
    operations: { createFolder: createFolderOperation, createService: createServiceOperation },
    items: [
      servicesOf(() => rootFolder),
      items({
        param: 'folder',
        find: (_root, segment, caller) => {
          const folder = visibleFolder(segment, caller);
          if (!folder) throw noSuchThing();
          return folder;
        },
        list: pageListsThem,
        resource: folderResource,
      }),
    ],
  });
}

/** There may be thousands; the views link to as many as a page can bear. */
const pageListsThem = () => [];

function toJson(service: Service): Json {
  const { folderName, serviceName, type, description, capabilities, parentType, url, access } = service;
  const { createdAt, updatedAt } = service;
  return {
    folderName,
    serviceName,
    type,
    description,
    capabilities,
    parentType,
    url,
    access,
    createdAt,
    updatedAt,
  };
}
