// The fields of folders and services. REST operations and the catalog file use the same schemas, so they apply the
// same rules.
import * as z from 'zod';
import { toNfc } from '../lib/text.ts';
import { choice, clearable, httpUrl, jsonObject, refuse, text, version } from '../rest/field-types.ts';
import { accesses, audiences, rootFolder } from './catalog.ts';
import { fieldMembers, maxDefinitionBytes } from './definition.ts';

const nameRule =
  '1 to 128 characters, no blank at either end, no control characters and none of / \\ ? # % * : " < > |';

const serviceNames = {
  pattern: /^(?!\s)(?!\.+$)[^\p{Cc}\p{Cs}\uFFFE\uFFFF/\\?#%*:"<>|]{1,128}(?<!\s)$/u,
  allowed: nameRule,
};
const folderNames = {
  pattern:
    /^(?!\s)(?!(?:webhooks|createFolder|createService|exists)$)[^\p{Cc}\p{Cs}\uFFFE\uFFFF/\\?#%*:"<>|.]{1,128}(?<!\s)$/iu,
  allowed: `${nameRule}, no dot, and not webhooks, createFolder, createService or exists`,
};
const serviceTypes = {
  pattern: /^[A-Za-z][A-Za-z0-9]{0,63}$/,
  allowed: 'a letter and up to 63 letters or digits',
};

const fields = {
  folderName: text({ to: 128, ...folderNames, normalise: toNfc }).describe('The name of the folder.'),
  serviceName: text({ to: 128, ...serviceNames, normalise: toNfc }).describe('The name of the service.'),
  type: text({ to: 64, ...serviceTypes }).describe('The type of the service, for example MapServer.'),
  // Listings contain these two, and are in memory: 50,000 services with the longest ones take 250 MB.
  description: text({ to: 4000, control: 'lines' }).describe('A description in a sentence or two.'),
  capabilities: text({ from: 0, to: 1000, normalise: normaliseList }).describe(
    'The capabilities, separated by commas.',
  ),
  parentType: text({ to: 64, ...serviceTypes }).meta({
    label: 'Parent type',
    description: 'The type of the service that this one extends. Empty for other services.',
  }),
  url: httpUrl().meta({
    label: 'Own address',
    description: 'The address of the service. Without it, clients get an address of this server.',
  }),
  access: choice(accesses).meta({
    label: 'Visible to',
    description: 'Who may see the service: everyone, all signed-in users, or administrators.',
    choiceLabels: audiences,
  }),
};

const words = { pattern: /^\w{1,128}$/, allowed: '1 to 128 letters of ASCII, digits or _' };

export type FolderNameRule = { readonly folderNamesAreWords: boolean };

export function folderFields({ folderNamesAreWords }: FolderNameRule = { folderNamesAreWords: false }) {
  return {
    folderName: folderNamesAreWords
      ? fields.folderName.check(z.refine((name) => words.pattern.test(name), `must be ${words.allowed}.`))
      : fields.folderName,
    description: fields.description.default(''),
  };
}

const serviceObject = jsonObject(maxDefinitionBytes)
  .transform((object, context) => {
    const wrong = fieldMembers.filter(
      (name) => !['string', 'undefined'].includes(typeof (object[name] ?? '')),
    );
    return wrong.length === 0
      ? object
      : refuse(context, [`the values of ${wrong.join(', ')} must be texts.`]);
  })
  .optional();

/** Both names are known in this family of APIs. */
const objectFields = {
  service: serviceObject.meta({
    label: 'As JSON',
    description:
      'The service as a JSON object of at most 64 KiB. Its members stand for the fields of their names, which win; all others are kept and returned.',
    isAdvanced: true,
    spreads: true,
  }),
  serviceJson: serviceObject.meta({
    description: 'Another name of service.',
    control: 'hidden',
    spreads: true,
  }),
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
  ...objectFields,
};

export const editFields = {
  description: clearable(fields.description),
  capabilities: clearable(fields.capabilities),
  parentType: clearable(fields.parentType),
  url: clearable(fields.url),
  access: fields.access.optional(),
  ...objectFields,
  version: version(),
};

/** The folder of a service in the catalog file need not exist yet, so the name must be one that a folder may have. */
const { service: _service, serviceJson: _serviceJson, ...ownFields } = createFields;

export const fileServiceFields = {
  ...ownFields,
  folderName: z.preprocess(
    (raw) => (raw === rootFolder ? undefined : raw),
    fields.folderName.default(rootFolder),
  ),
  url: fields.url.nullable().default(null),
};

function normaliseList(text: string): string {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .join(',');
}
