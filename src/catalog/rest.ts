// REST resources of the catalog: `services`, its folders and services, and the operations that change them.
import * as z from 'zod';
import type { Caller } from '../lib/caller.ts';
import { type Problem, ServiceError } from '../lib/errors.ts';
import type { Json, SharedJson } from '../lib/json.ts';
import { answerObject, openAnswerObject } from '../rest/answer.ts';
import { toNfc } from '../lib/text.ts';
import { text } from '../rest/field-types.ts';
import { definedOnly } from '../rest/fields.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Items, type Resource, items, resource } from '../rest/resource.ts';
import type { Reader } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';
import type { CatalogCache } from './catalog-cache.ts';
import {
  type Folder,
  type Service,
  type ServiceAccess,
  type ServiceChange,
  type ServiceId,
  audienceOf,
  createFolder,
  createService,
  deleteFolder,
  deleteService,
  editService,
  fileNameOf,
  findFolder,
  folderOrServiceNotFound,
  isStarted,
  mayList,
  pathOfService,
  rootFolder,
  serviceInFolder,
  unknownFolder,
} from './catalog.ts';
import { keepDefinition, ownJson, serviceToJson } from './definition.ts';
import { type FolderNameRule, createFields, editFields, folderFields, ownAnswer } from './fields.rest.ts';
import { folderView, rootView } from './pages/browse.ts';
import { type RunningOptions, runOperations, statusResource } from './running.rest.ts';
import { type ServiceViewOptions, serviceView } from './pages/service.ts';

const listedAnswer = answerObject('ListedService', 'A service of the catalog.', ownAnswer);

const serviceAnswer = openAnswerObject(
  'Service',
  'A service of the catalog, with the other members that it was given.',
  ownAnswer,
);

const contents = {
  folders: z.array(z.string()).describe('The names of the folders that the caller may see.'),
  services: z.array(listedAnswer).describe('The services that the caller may see.'),
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

type CatalogOptions = ServiceViewOptions &
  Omit<RunningOptions, 'notify'> & {
    readonly store: Reader;
    readonly catalogCache: CatalogCache;
    readonly rules: FolderNameRule;
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
    read: ({ subject }) => serviceToJson(subject),
    view: (page) => serviceView(options, page),
    isOffered: (found, name) => name !== 'status' && name !== (isStarted(found) ? 'start' : 'stop'),
    // Its page says whether the service is started.
    page: (found, [beneath]) =>
      beneath === 'status' ? ['services', ...pathOfService(found).split('/')] : undefined,
    resources: { status: statusResource, ...options.serviceResources },
    operations: {
      edit: editOperation(options),
      delete: deleteOperation(options),
      ...runOperations(options),
    },
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
    operations: {
      deleteFolder: deleteFolderOperation(),
      createService: createServiceOperation<Folder>(options, ({ folderName }) => folderName),
    },
    isOffered: (_folder, name) => name !== 'createService',
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
      createService: createServiceOperation<unknown>(options, () => undefined),
      exists: existsOperation(options),
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

const linkTo = (id: ServiceId) => ({
  name: 'Open the service',
  path: ['services', ...pathOfService(id).split('/')],
});

function createFolderOperation({ limits, rules }: CatalogOptions): Operation {
  return operation({
    title: 'Create folder',
    description: 'Creates an empty folder.',
    access: 'publisher',
    fields: folderFields(rules),
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

/** `folderOf` is the folder that the path names, if it names one. */
function createServiceOperation<S>(
  options: CatalogOptions,
  folderOf: (subject: S) => string | undefined,
): Operation<S> {
  const { limits, notify, catalogCache } = options;
  return operation<S, typeof createFields>({
    title: 'Create service',
    description: 'Adds a service to the catalog.',
    access: 'publisher',
    fields: createFields,
    suggest: (_subject, caller) => {
      const { folders, services } = catalogCache.listing(audienceOf(caller));
      return { folderName: folders, type: [...new Set(services.map(({ type }) => type))] };
    },
    check: ({ subject, values, caller }) => {
      const inPath = folderOf(subject);
      const { folderName = inPath ?? rootFolder } = values;
      if (inPath !== undefined && folderName !== inPath)
        return { problems: [{ field: 'folderName', message: `must be ${inPath} here, or absent.` }] };
      const exists = folderName === rootFolder || visibleFolder(options, folderName, caller) !== undefined;
      return { problems: exists ? [] : [unknownFolder(folderName)] };
    },
    run: async ({ subject, values, caller, update }) => {
      const { serviceName, type, url = null, service, serviceJson, ...given } = values;
      const folderName = given.folderName ?? folderOf(subject) ?? rootFolder;
      const traits = { ...given, ...keepDefinition(service ?? serviceJson ?? {}) };
      requireMaySetAccess(caller, values.access);
      const id = { folderName, serviceName, type };
      await update(
        (transaction, at) => {
          createService(transaction, { ...traits, ...id, url }, { at, limits });
          notify(transaction, 'Created', id, at);
        },
        { target: `services/${pathOfService(id)}` },
      );
      return succeeded(`The service ${pathOfService(id)} was created.`, linkTo(id));
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
    check: ({ subject, values }) => ({ problems: renameProblems(subject, values) }),
    run: async ({ subject, values, caller, update }) => {
      requireMaySetAccess(caller, values.access);
      const { url, version, service, serviceJson, ...rest } = values;
      const object = service ?? serviceJson;
      const change = {
        ...definedOnly(rest),
        ...(url !== undefined && { url: url === '' ? null : url }),
        ...(object && keepDefinition(object)),
      };
      await update((transaction, at) => {
        const isChanged = editService(transaction, subject, change, { at, limits, version });
        if (isChanged) notify(transaction, 'Updated', subject, at);
      });
      return succeeded(`The service ${fileNameOf(subject)} was changed.`, linkTo(subject));
    },
  });
}

type ServiceObjects = {
  readonly service?: Readonly<Record<string, unknown>> | undefined;
  readonly serviceJson?: Readonly<Record<string, unknown>> | undefined;
};

/** Programs send back the names that they have read. */
function renameProblems(subject: Service, { service, serviceJson }: ServiceObjects): Problem[] {
  const object = service ?? serviceJson ?? {};
  const folderName = object.folderName === '' ? rootFolder : object.folderName;
  const given: Readonly<Record<string, unknown>> = { ...object, folderName };
  const changed = (['folderName', 'serviceName', 'type'] as const).filter(
    (name) => (given[name] ?? subject[name]) !== subject[name],
  );
  return changed.map((name) => ({
    field: `service.${name}`,
    message: `must be ${subject[name]}, or absent.`,
  }));
}

const existsFields = {
  folderName: text({ to: 128 }).optional().describe('The folder; absent or / for the root.'),
  serviceName: text({ to: 128 })
    .optional()
    .describe('The name of the service. Absent: only the folder is asked for.'),
  type: text({ to: 64 }).optional().describe('The type of the service. Absent: any.'),
};

const existsAnswer = answerObject('Exists', 'Whether there is such a folder or service.', {
  exists: z.boolean(),
});

function existsOperation({ catalogCache }: CatalogOptions): Operation {
  return operation<unknown, typeof existsFields>({
    title: 'Look for a folder or service',
    description: 'Says whether the caller may see such a folder or service.',
    access: 'member',
    effect: 'reads',
    form: 'elsewhere',
    fields: existsFields,
    answer: existsAnswer,
    run: ({ values: { folderName = rootFolder, serviceName, type }, caller }) => {
      const listed = catalogCache.listing(audienceOf(caller)).byFolder.get(toNfc(folderName));
      const isMeant = (service: Service) =>
        (serviceName === undefined || service.serviceName === toNfc(serviceName)) &&
        (type === undefined || service.type === type);
      const asksForService = serviceName !== undefined || type !== undefined;
      return { json: { exists: asksForService ? (listed?.some(isMeant) ?? false) : listed !== undefined } };
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

function listingJson(
  { catalogCache }: CatalogOptions,
  folderName: string,
  caller: Caller,
  head: () => { readonly [key: string]: Json },
): SharedJson {
  const audience = audienceOf(caller);
  const services = () => (catalogCache.listing(audience).byFolder.get(folderName) ?? []).map(ownJson);
  return catalogCache.servicesJson(`json ${audience} ${folderName}`, head, services);
}
