// The fields of folders and services. REST operations and the catalog file use the same descriptors, so they apply
// the same rules.
import { toNfc } from '../lib/text.ts';
import {
  type Field,
  choice,
  clearable,
  defaultTo,
  advanced,
  httpUrl,
  labelled,
  required,
  text,
} from '../rest/fields.ts';
import {
  accesses,
  audiences,
  folderNames,
  maxLength,
  normaliseList,
  rootFolder,
  serviceNames,
  serviceTypes,
} from './catalog.ts';

const fields = {
  folderName: text('The name of the folder.', { to: 128, ...folderNames, normalise: toNfc }),
  serviceName: text('The name of the service.', { to: 128, ...serviceNames, normalise: toNfc }),
  type: text('The type of the service, for example MapServer.', { to: 64, ...serviceTypes }),
  description: text('A description in a sentence or two.', { to: maxLength.description, lines: true }),
  capabilities: text('The capabilities, separated by commas.', {
    from: 0,
    to: maxLength.capabilities,
    normalise: normaliseList,
  }),
  parentType: text('The type of the service that this one extends. Empty for other services.', {
    to: 64,
    ...serviceTypes,
  }),
  url: httpUrl('The address of the service. Without it, clients get an address of this server.'),
  access: labelled(
    'Visible to',
    choice('Who may see the service: everyone, all signed-in users, or administrators.', accesses, {
      labels: audiences,
    }),
  ),
};

export const folderFields = {
  folderName: required(fields.folderName),
  description: defaultTo(fields.description, ''),
};

export const createFields = {
  folderName: labelled(
    'Folder',
    text('The folder of the service; empty for the root.', { to: 128, normalise: toNfc }),
  ),
  serviceName: required(fields.serviceName),
  type: required(fields.type),
  description: defaultTo(fields.description, ''),
  capabilities: advanced(defaultTo(fields.capabilities, '')),
  parentType: advanced(labelled('Extends', defaultTo(fields.parentType, ''))),
  url: advanced(labelled('Address', fields.url)),
  access: defaultTo(fields.access, 'public'),
};

export const editFields = {
  description: clearable(fields.description),
  capabilities: clearable(fields.capabilities),
  parentType: labelled('Extends', clearable(fields.parentType)),
  url: labelled('Address', clearable(fields.url)),
  access: fields.access,
};

/** The folder of a service in the catalog file need not exist yet, so the name must be one that a folder may have. */
export const fileServiceFields = {
  ...createFields,
  folderName: folderOrRoot(fields.folderName),
  url: defaultTo<string | null>(fields.url, null),
};

function folderOrRoot(folderName: Field<string | undefined>): Field<string> {
  const field = defaultTo(folderName, rootFolder);
  return { ...field, read: (raw) => field.read(raw === rootFolder ? undefined : raw) };
}
