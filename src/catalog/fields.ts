// What the catalog's operations ask for: the fields of folders and services (contract 4).
import { toNfc } from '../lib/text.ts';
import { choice, clearable, defaultTo, httpUrl, required, text } from '../rest/fields.ts';
import { accesses, folderNames, longest, serviceNames, serviceTypes, tidyList } from './catalog.ts';

const fields = {
  folderName: text('The name of the folder.', { to: 128, ...folderNames, normalise: toNfc }),
  serviceName: text('The name of the service.', { to: 128, ...serviceNames, normalise: toNfc }),
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

export const folderFields = {
  folderName: required(fields.folderName),
  description: defaultTo(fields.description, ''),
};

export const createFields = {
  folderName: text('The folder to hold it; absent or / for the root.', { to: 128, normalise: toNfc }),
  serviceName: required(fields.serviceName),
  type: required(fields.type),
  description: defaultTo(fields.description, ''),
  capabilities: defaultTo(fields.capabilities, ''),
  parentType: defaultTo(fields.parentType, ''),
  url: fields.url,
  access: defaultTo(fields.access, 'public'),
};

export const editFields = {
  description: clearable(fields.description),
  capabilities: clearable(fields.capabilities),
  parentType: clearable(fields.parentType),
  url: clearable(fields.url),
  access: fields.access,
};
