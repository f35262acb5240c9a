// The fields of folders and services. REST operations and the catalog file use the same schemas, so they apply the
// same rules.
import * as z from 'zod';
import { toNfc } from '../lib/text.ts';
import { choice, clearable, httpUrl, text, version } from '../rest/field-types.ts';
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
  folderName: text({ to: 128, ...folderNames, normalise: toNfc }).describe('The name of the folder.'),
  serviceName: text({ to: 128, ...serviceNames, normalise: toNfc }).describe('The name of the service.'),
  type: text({ to: 64, ...serviceTypes }).describe('The type of the service, for example MapServer.'),
  description: text({ to: maxLength.description, control: 'lines' }).describe(
    'A description in a sentence or two.',
  ),
  capabilities: text({ from: 0, to: maxLength.capabilities, normalise: normaliseList }).describe(
    'The capabilities, separated by commas.',
  ),
  parentType: text({ to: 64, ...serviceTypes }).meta({
    label: 'Extends',
    description: 'The type of the service that this one extends. Empty for other services.',
  }),
  url: httpUrl().meta({
    label: 'Address',
    description: 'The address of the service. Without it, clients get an address of this server.',
  }),
  access: choice(accesses).meta({
    label: 'Visible to',
    description: 'Who may see the service: everyone, all signed-in users, or administrators.',
    choiceLabels: audiences,
  }),
};

export const folderFields = {
  folderName: fields.folderName,
  description: fields.description.default(''),
};

export const createFields = {
  folderName: text({ to: 128, normalise: toNfc })
    .optional()
    .meta({ label: 'Folder', description: 'The folder of the service; empty for the root.' }),
  serviceName: fields.serviceName,
  type: fields.type,
  description: fields.description.default(''),
  capabilities: fields.capabilities.default('').meta({ isAdvanced: true }),
  parentType: fields.parentType.default('').meta({ isAdvanced: true }),
  url: fields.url.optional().meta({ isAdvanced: true }),
  access: fields.access.default('public'),
};

export const editFields = {
  description: clearable(fields.description),
  capabilities: clearable(fields.capabilities),
  parentType: clearable(fields.parentType),
  url: clearable(fields.url),
  access: fields.access.optional(),
  version: version(),
};

/** The folder of a service in the catalog file need not exist yet, so the name must be one that a folder may have. */
export const fileServiceFields = {
  ...createFields,
  folderName: z.preprocess(
    (raw) => (raw === rootFolder ? undefined : raw),
    fields.folderName.default(rootFolder),
  ),
  url: fields.url.nullable().default(null),
};
