// The settings of a version as fields of a form, and the conversion of their texts to `upgradeSettings`.
import { fieldView } from '../../console/form.ts';
import { formatTime, renderSentence } from '../../console/time.ts';
import { type Html, html } from '../../lib/html.ts';
import { type FieldDescription, type Parts, boxName } from '../../rest/fields.ts';
import { parseJsonObject } from '../../rest/field-types.ts';
import type { Upload } from '../../uploads/upload.ts';
import {
  type SettingEntry,
  type SettingProblem,
  entriesIn,
  extensionsOf,
  fileFilter,
} from '../planning/settings.ts';

/** A setting with the text of its field. */
export type EnteredSetting = {
  readonly entry: SettingEntry;
  readonly text: string;
  readonly field: FieldDescription & { readonly label: string };
};

/** Each field for a file lists them. */
const maxUploads = 200;

/** Before the first form, `given` is undefined: the settings then have their presets, and files of the last job. */
export function enteredSettings(
  entries: readonly SettingEntry[],
  given: Readonly<Record<string, unknown>> | undefined,
  { uploads, used }: { uploads: readonly Upload[]; used: readonly string[] },
): EnteredSetting[] {
  const values = new Map(entriesIn(given).map(({ id, value }) => [id, value]));
  const findUsed = (entry: SettingEntry) =>
    usableFiles(entry, uploads).findLast(({ itemID }) => used.includes(itemID))?.itemID;
  return entries.map((entry) => {
    const text = textOf(given ? values.get(entry.id) : (findUsed(entry) ?? entry.value));
    return { entry, text, field: describeSetting(entry, text, uploads.slice(-maxUploads)) };
  });
}

function usableFiles(entry: SettingEntry, uploads: readonly Upload[]): Upload[] {
  const isAllowed = fileFilter(entry);
  return entry.type === 'File' ? uploads.filter(({ itemName }) => isAllowed(itemName)) : [];
}

function textOf(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function describeSetting(
  entry: SettingEntry,
  text: string,
  uploads: readonly Upload[],
): EnteredSetting['field'] {
  const { type, required, defaultValue } = entry;
  const isBoolean = type === 'Boolean';
  return {
    label: settingLabel(entry),
    description: settingHint(entry),
    isRequired: required === true && !isBoolean,
    fallback: isBoolean ? defaultValue === true : undefined,
    schema: isBoolean ? { type: 'boolean' } : {},
    ...(isBoolean && { choiceLabels: { true: 'Yes', false: 'No' } }),
    ...(type === 'JSON' && { control: 'lines' as const }),
    ...(type === 'File' && describeFiles(entry, text, uploads)),
  };
}

function describeFiles(entry: SettingEntry, text: string, uploads: readonly Upload[]) {
  const files = usableFiles(entry, uploads).toReversed();
  const choices = new Map(
    files.map(({ itemID, itemName, date }) => [itemID, `${itemName}, uploaded ${formatTime(date)}`]),
  );
  // An unusable file, or one that was deleted.
  if (text !== '' && !choices.has(text)) choices.set(text, text);
  const types = extensionsOf(entry).map((extension) => `.${extension}`);
  return {
    ...(types.length > 0 && { allowed: types.join(', ') }),
    choiceLabels: Object.fromEntries(choices),
    schema: { enum: [...choices.keys()] },
  };
}

/** Manifests name these settings with identifiers, not with text for people. */
const labels: Readonly<Record<string, { label: string; hint: string }>> = {
  updateToLatestPatch: {
    label: 'Install the patches of the release too',
    hint: 'Installs them in the same job, up to the latest one.',
  },
  licenseUpload: { label: 'License file', hint: 'A license for this release.' },
  volumesConfig: {
    label: 'Storage configuration',
    hint: 'For the persistent volumes that the upgrade needs.',
  },
};

function settingLabel({ id, name }: SettingEntry): string {
  return labels[id]?.label ?? (typeof name === 'string' && name !== '' ? name : id);
}

function settingHint({ id, description }: SettingEntry): string {
  return labels[id]?.hint ?? (typeof description === 'string' && description !== id ? description : '');
}

/** The name of its field after `boxName`. It has the type, because `join` does not know the version. */
function partName({ type, id }: SettingEntry): string {
  return `${type === 'Boolean' || type === 'JSON' ? type : 'Text'}.${id}`;
}

export function settingView(
  { entry, text, field }: EnteredSetting,
  problems: readonly SettingProblem[],
): Html {
  const messages = problems.flatMap(({ setting, message }) => (setting === entry.id ? message : []));
  const name = boxName('upgradeSettings', partName(entry));
  return fieldView(name, field, { id: `setting-${entry.seqNum}`, entered: text, problems: messages });
}

/** What the reader has chosen or entered. */
export function settingSummary({ text, field }: EnteredSetting): Html | string {
  const chosen = text === '' ? String(field.fallback ?? '') : text;
  if (chosen.trim() === '') return html`<span class="none">none</span>`;
  if (field.control === 'lines') return html`<code>${chosen}</code>`;
  return renderSentence(field.choiceLabels?.[chosen] ?? chosen);
}

export const settingParts: Parts = {
  join: (values) => JSON.stringify(composeSettings(Object.entries(values))),
};

export function toUpgradeSettings(entered: readonly EnteredSetting[]) {
  return composeSettings(entered.map(({ entry, text }) => [partName(entry), text]));
}

/** Text that is no JSON object stays text, so that the check of the settings reports it. */
function composeSettings(values: readonly [string, string][]) {
  const userInputs = values.flatMap(([name, text]) => {
    const [, type, id] = /^(Boolean|JSON|Text)\.(.*)$/s.exec(name) ?? [];
    if (id === undefined || (type !== 'Text' && text.trim() === '')) return [];
    if (type === 'Boolean') return { id, value: text.trim() === 'true' };
    const parsed = type === 'JSON' ? parseJsonObject(text) : {};
    return { id, value: 'object' in parsed ? parsed.object : text };
  });
  return { userInputs };
}
