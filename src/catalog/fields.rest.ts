// The fields of folders and services. REST operations, their answers and the catalog file use the same schemas, so they
// apply the same rules.
import * as z from 'zod';
import { toNfc } from '../lib/text.ts';
import { time } from '../rest/answer.ts';
import { choice, clearable, httpUrl, jsonObject, refuse, text, version } from '../rest/field-types.ts';
import { type OwnTrait, accesses, audiences, rootFolder } from './catalog.ts';
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

const names = {
  folderName: text({ to: 128, ...folderNames, normalise: toNfc }).describe('The name of the folder.'),
  serviceName: text({ to: 128, ...serviceNames, normalise: toNfc }).describe('The name of the service.'),
  type: text({ to: 64, ...serviceTypes }).describe('The type of the service, for example MapServer.'),
};

const description = text({ to: 4000, control: 'lines' }).describe('A description in a sentence or two.');

const url = httpUrl().meta({
  label: 'Own address',
  description: 'The address of the service. Without it, clients get an address of this server.',
});

const access = choice(accesses).meta({
  label: 'Visible to',
  description: 'Who may see the service: everyone, all signed-in users, or administrators.',
  choiceLabels: audiences,
});

/** A text that a new service may lack and that a change may clear. */
function optionalText(field: z.ZodString, { isAdvanced = true } = {}) {
  const answer = z.string().describe(field.description ?? '');
  return { create: field.default('').meta({ isAdvanced }), edit: clearable(field), answer };
}

/** What creates and changes each trait of a service, and what answers it. */
const traits = {
  // Listings contain these two, and are in memory: 50,000 services with the longest ones take 250 MB.
  description: optionalText(description, { isAdvanced: false }),
  capabilities: optionalText(
    text({ from: 0, to: 1000, normalise: normaliseList }).describe('The capabilities, separated by commas.'),
  ),
  parentType: optionalText(
    text({ to: 64, ...serviceTypes }).meta({
      label: 'Parent type',
      description: 'The type of the service that this one extends. Empty for other services.',
    }),
  ),
  url: {
    create: url.optional().meta({ isAdvanced: true }),
    edit: clearable(url),
    answer: z.string().nullable().describe('The address of the service. Null: one of this server.'),
  },
  access: {
    create: access.default('public'),
    edit: access.optional(),
    answer: z.enum(accesses).describe('Who sees the service.'),
  },
} satisfies Record<OwnTrait, Record<'create' | 'edit' | 'answer', z.ZodType>>;

/** One use of all traits. */
function traitsTo<U extends 'create' | 'edit' | 'answer'>(use: U) {
  const entries = Object.entries(traits).map(([name, uses]) => [name, uses[use]]);
  return Object.fromEntries(entries) as { [T in OwnTrait]: (typeof traits)[T][U] };
}

export const ownAnswer = {
  folderName: z.string().describe('The folder, or / for the root.'),
  serviceName: z.string(),
  type: z.string(),
  ...traitsTo('answer'),
  createdAt: time,
  updatedAt: time,
};

const words = { pattern: /^\w{1,128}$/, allowed: '1 to 128 letters of ASCII, digits or _' };

export type FolderNameRule = { readonly folderNamesAreWords: boolean };

export function folderFields({ folderNamesAreWords }: FolderNameRule = { folderNamesAreWords: false }) {
  return {
    folderName: folderNamesAreWords
      ? names.folderName.check(z.refine((name) => words.pattern.test(name), `must be ${words.allowed}.`))
      : names.folderName,
    description: description.default(''),
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
    description: 'Another name of service, which counts if both are given.',
    control: 'hidden',
    spreads: true,
    unused: ({ service }) => service !== undefined,
  }),
};

export const createFields = {
  folderName: text({ to: 128, normalise: toNfc })
    .optional()
    .meta({ label: 'Folder', description: 'The folder of the service; empty for the root.' }),
  serviceName: names.serviceName,
  type: names.type,
  ...traitsTo('create'),
  ...objectFields,
};

export const editFields = {
  ...traitsTo('edit'),
  ...objectFields,
  version: version(),
};

/** The folder of a service in the catalog file need not exist yet, so the name must be one that a folder may have. */
const { service: _service, serviceJson: _serviceJson, ...ownFields } = createFields;

export const fileServiceFields = {
  ...ownFields,
  folderName: z.preprocess(
    (raw) => (raw === rootFolder ? undefined : raw),
    names.folderName.default(rootFolder),
  ),
  url: url.nullable().default(null),
};

function normaliseList(text: string): string {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .join(',');
}
