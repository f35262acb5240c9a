// REST edge of the catalog: `services`, its folders and services (contract 4).
import type { Caller } from '../caller.ts';
import { type Resource, isId, items, operation, resource, success } from '../rest/directory.ts';
import type { Json } from '../rest/json.ts';
import { choice, clearable, defaultTo, definedOnly, httpUrl, required, text } from '../rest/fields.ts';
import type { Store } from '../store/store.ts';
import type { World } from '../world.ts';
import {
  type Folder,
  type Service,
  type TellService,
  accesses,
  createFolder,
  createService,
  deleteFolder,
  deleteService,
  editService,
  fileNameOf,
  findFolder,
  folderNames,
  longest,
  mayList,
  noSuchFolder,
  noSuchThing,
  refuseGrant,
  rootFolder,
  serviceInFolder,
  serviceNames,
  serviceTypes,
  tidyList,
} from './catalog.ts';
import type { Librarian } from './librarian.ts';
import { audienceOf } from './listing.ts';

const nfc = (value: string) => value.normalize('NFC');

const fields = {
  folderName: text('The name of the folder.', { to: 128, ...folderNames, normalise: nfc }),
  serviceName: text('The name of the service.', { to: 128, ...serviceNames, normalise: nfc }),
  type: text('The type of the service, for example MapServer.', { to: 64, ...serviceTypes }),
  description: text('What it is, in a sentence or two.', { to: longest.description, lines: true }),
  capabilities: text('What it can do: a comma list.', {
    from: 0,
    to: longest.capabilities,
    normalise: tidyList,
  }),
  parentType: text('The type of the service this one extends; empty for plain services.', {
    to: 64,
    ...serviceTypes,
  }),
  url: httpUrl('Its own address; an address of this server when absent.'),
  access: choice('Who sees it: everybody, any token, or administrators.', accesses),
};

export type CatalogOptions = {
  store: Store;
  world: World;
  librarian: Librarian;
  tell: TellService;
  /** What other features hang beneath `services`, and beneath each service. */
  resources: Record<string, Resource>;
  serviceResources: Record<string, Resource<Service>>;
};

export function describeCatalog({ store, world, librarian, tell, ...beneath }: CatalogOptions): Resource {
  function contents(folderName: string, caller: Caller, folders: readonly string[]) {
    const listed = librarian.listing(audienceOf(caller)).byFolder.get(folderName) ?? [];
    return { folders, services: listed.map(toJson) };
  }

  const serviceResource = resource<Service>({
    title: 'Service',
    description: 'One service of the catalog.',
    access: 'member',
    read: ({ subject }) => toJson(subject),
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
          const at = world.now();
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
          const at = world.now();
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
      accepts: (segment) => isId(segment) && segment.includes('.'),
      find: (subject, segment, caller) => {
        const service = serviceInFolder(store, folderNameOf(subject), segment);
        if (!service || !mayList(service, caller)) throw noSuchThing();
        return service;
      },
      list: (subject, caller) =>
        (librarian.listing(audienceOf(caller)).byFolder.get(folderNameOf(subject)) ?? []).map(fileNameOf),
      resource: serviceResource,
    });

  const folderResource = resource<Folder>({
    title: 'Folder',
    description: 'A folder of the catalog and the services in it.',
    access: 'member',
    read: ({ subject, caller }) => ({ ...subject, ...contents(subject.folderName, caller, []) }),
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
    return librarian.listing(audienceOf(caller)).byFolder.has(name) ? findFolder(store, name) : undefined;
  }

  const createFolderOperation = operation({
    title: 'Create folder',
    description: 'Creates an empty folder.',
    access: 'publisher',
    effect: 'writes',
    fields: { folderName: required(fields.folderName), description: defaultTo(fields.description, '') },
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
    fields: {
      folderName: text('The folder to hold it; absent or / for the root.', { to: 128, normalise: nfc }),
      serviceName: required(fields.serviceName),
      type: required(fields.type),
      description: defaultTo(fields.description, ''),
      capabilities: defaultTo(fields.capabilities, ''),
      parentType: defaultTo(fields.parentType, ''),
      url: fields.url,
      access: defaultTo(fields.access, 'public'),
    },
    check: ({ values: { folderName = rootFolder }, caller }) =>
      folderName === rootFolder || visibleFolder(folderName, caller) ? [] : [noSuchFolder(folderName)],
    run: async ({ values, caller }) => {
      const { folderName = rootFolder, serviceName, type, url = null, ...traits } = values;
      refuseGrant(caller, values.access);
      const at = world.now();
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
      ...contents(rootFolder, caller, librarian.listing(audienceOf(caller)).folders),
    }),
    resources: beneath.resources,
    operations: { createFolder: createFolderOperation, createService: createServiceOperation },
    items: [
      servicesOf(() => rootFolder),
      items({
        param: 'folder',
        accepts: isId,
        find: (_root, segment, caller) => {
          const folder = visibleFolder(segment, caller);
          if (!folder) throw noSuchThing();
          return folder;
        },
        list: (_root, caller) => librarian.listing(audienceOf(caller)).folders,
        resource: folderResource,
      }),
    ],
  });
}

const editFields = {
  description: clearable(fields.description),
  capabilities: clearable(fields.capabilities),
  parentType: clearable(fields.parentType),
  url: clearable(fields.url),
  access: fields.access,
};

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
