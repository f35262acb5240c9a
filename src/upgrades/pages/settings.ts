// The form for the settings of a version, and the conversion of its entries to `upgradeSettings`.
import { hiddenFields } from '../../console/action.ts';
import { formatTime } from '../../console/time.ts';
import { html, type Html } from '../../lib/html.ts';
import { carriedPrefix } from '../../rest/fields.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Upload } from '../../uploads/upload.ts';
import {
  type SettingEntry,
  type SettingProblem,
  extensionsOf,
  fileFilter,
  settingsOf,
} from '../planning/settings.ts';
import type { Version } from '../versions/manifest.ts';
import { versionName } from './versions.ts';

/**
 * The address contains the form. These limits, before and after encoding, keep the address acceptable to servers
 * and proxies.
 */
const maxCharacters = 3000;
const maxEncoded = 12 * 1024;
const useOperation = 'the operation upgrade takes longer ones.';

export type EnteredSetting = { readonly entry: SettingEntry; readonly text: string };

const fieldName = (id: string) => `setting.${id}`;

export function enteredSettings(path: readonly Version[], query: URLSearchParams): EnteredSetting[] {
  return settingsOf(...path).userInputs.map((entry) => ({
    entry,
    text: query.get(fieldName(entry.id)) ?? presetText(entry),
  }));
}

/** Selects the newest suitable file of the last job, unless the address names one or none. */
export function selectUsedFiles(
  entered: readonly EnteredSetting[],
  query: URLSearchParams,
  used: readonly Upload[],
): EnteredSetting[] {
  return entered.map((one) => {
    const { entry } = one;
    if (entry.type !== 'File' || query.has(fieldName(entry.id))) return one;
    const isAllowed = fileFilter(entry);
    const upload = used.findLast(({ itemName }) => isAllowed(itemName));
    return upload ? { entry, text: upload.itemID } : one;
  });
}

const toPair = ({ entry, text }: EnteredSetting): [string, string] => [fieldName(entry.id), text];

export function settingsQuery(version: Version, entered: readonly EnteredSetting[]): URLSearchParams {
  const changed = entered.filter(({ entry, text }) => text !== presetText(entry));
  return new URLSearchParams([['version', version.id], ...changed.map(toPair)]);
}

export function findOverlong(
  version: Version,
  entered: readonly EnteredSetting[],
): SettingProblem | undefined {
  const lengthOf = (pairs: [string, string][]) => new URLSearchParams(pairs).toString().length;
  // Browsers send line breaks as CR LF.
  const pairs = entered.map(({ entry, text }) => toPair({ entry, text: text.replace(/\r?\n/g, '\r\n') }));
  const length = lengthOf([['version', version.id], ['step', 'plan'], ...pairs]);
  if (length <= maxEncoded) return undefined;
  const lengths = pairs.map((pair) => lengthOf([pair]));
  const longest = entered[lengths.indexOf(Math.max(...lengths))];
  if (!longest) return undefined;
  const setting = longest.entry.id;
  const message = `${setting} is too long for this page: encoded, the settings have ${length} of at most ${maxEncoded} characters; ${useOperation}`;
  return { field: 'upgradeSettings', setting, message };
}

function presetText({ type, value, defaultValue }: SettingEntry): string {
  if (type === 'Boolean') return (value ?? defaultValue) === true ? 'true' : 'false';
  if (type === 'JSON') return JSON.stringify(value ?? {}, null, 2);
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}

/** Text that is not valid JSON stays text, so that the check of the settings reports it. */
export function composeSettings(entered: readonly EnteredSetting[]) {
  return {
    userInputs: entered
      .filter(({ text }) => text.trim() !== '')
      .map(({ entry, text }) => ({ id: entry.id, value: parseEntry(entry, text) })),
  };
}

function parseEntry(entry: SettingEntry, text: string): unknown {
  if (entry.type === 'File') return text;
  if (entry.type === 'Boolean' || entry.type === 'JSON') {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  }
  return text === presetText(entry) ? entry.value : text;
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

export function settingLabel({ id, name }: SettingEntry): string {
  return labels[id]?.label ?? (typeof name === 'string' && name !== '' ? name : id);
}

function settingHint({ id, description }: SettingEntry): string {
  return labels[id]?.hint ?? (typeof description === 'string' && description !== id ? description : '');
}

type SettingsForm = {
  readonly version: Version;
  readonly entered: readonly EnteredSetting[];
  readonly uploads: readonly Upload[];
  readonly problems: ReadonlyMap<string | undefined, readonly SettingProblem[]>;
  /** The setting whose file this form uploads, together with all other settings. */
  readonly upload: EnteredSetting | undefined;
  readonly mayUpload: boolean;
};

/**
 * The setting to upload a file for: the one that the address names, or the first that needs one. An empty name
 * means none.
 */
export function settingToUpload(
  entered: readonly EnteredSetting[],
  asked: string | null,
): EnteredSetting | undefined {
  if (asked === '') return undefined;
  const files = entered.filter(({ entry }) => entry.type === 'File');
  return (
    files.find(({ entry }) => entry.id === asked) ??
    files.find(({ entry, text }) => entry.required === true && text === '')
  );
}

/**
 * One form with all settings. Without a file to upload, it asks for the plan. With one, it sends the file to the
 * operation `upload`, which redirects to the plan: the server adds the fields `next.…` to the address, and replaces
 * `{itemID}` by the id of the file.
 */
export function settingsForm(form: SettingsForm, page: PageContext<unknown>): Html {
  const { version, entered, upload } = form;
  if (!upload) {
    return html`<form method="get" action="${page.here()}">
      ${hiddenFields({ version: version.id })} ${entered.map((one) => settingView(one, form))}
      <p><button name="step" value="plan">Show the plan</button></p>
    </form>`;
  }
  const selecting = settingsQuery(version, entered);
  selecting.set('upload', '');
  const query = settingsQuery(version, entered);
  query.set('step', 'plan');
  query.set(fieldName(upload.entry.id), '{itemID}');
  const fields = {
    f: 'html',
    token: page.formToken,
    next: `${page.here()}?${query.toString()}`,
    description: `${settingLabel(upload.entry)} for ${versionName(version)}`,
  };
  // A multipart form has at most 64 parts. `next` carries the settings as they were when the page was opened.
  const shown = entered.length > maxCarried ? [upload] : entered;
  return html`<form method="post" action="${page.href('uploads', 'upload')}" enctype="multipart/form-data">
    ${hiddenFields(fields)} ${shown.map((one) => settingView(one, form))}
    <p><button>Upload the file and show the plan</button></p>
    ${form.uploads.length > 0 && html`<p><a href="${page.here()}?${selecting.toString()}">Use an uploaded file</a></p>`}
  </form>`;
}

const maxCarried = 50;

const htmlId = ({ seqNum }: SettingEntry) => `setting-${seqNum}`;

function settingView(one: EnteredSetting, form: SettingsForm): Html {
  const { entry } = one;
  const id = htmlId(entry);
  const isUpload = one === form.upload;
  const problems = (form.problems.get(entry.id) ?? []).map(({ message }) => message);
  const describedBy = [`${id}-hint`, ...(problems.length > 0 ? [`${id}-problem`] : [])].join(' ');
  const carried = form.upload ? carriedPrefix : '';
  const name = isUpload ? 'itemFile' : `${carried}${fieldName(entry.id)}`;
  const attributes = html`id="${id}" name="${name}" aria-describedby="${describedBy}"
  ${problems.length > 0 && html`aria-invalid="true"`}`;
  const isJson = entry.type === 'JSON';
  const needed = entry.required === true && entry.type !== 'Boolean';
  return html`<div class="field">
    <label for="${id}"
      >${settingLabel(entry)}${needed && html` <span class="required">required</span>`}</label
    >
    ${isUpload ? fileInput(entry, attributes) : controlView(one, form, attributes)}
    <p class="hint" id="${id}-hint">
      ${settingHint(entry)}${isUpload && allowedTypes(entry)}
      ${isJson && `At most ${maxPerControl(form)} characters.`}
    </p>
    ${problems.length > 0 && html`<p class="problem" id="${id}-problem">${problems.join(' ')}</p>`}
    ${entry.type === 'File' && !isUpload && form.mayUpload && !form.upload && uploadButton(entry)}
  </div> `;
}

/** Submits the settings, so that the page with the file input shows them again. */
function uploadButton({ id }: SettingEntry): Html {
  return html`<button class="quiet" name="upload" value="${id}">Upload a file …</button>`;
}

const typesOf = (entry: SettingEntry) => extensionsOf(entry).map((extension) => `.${extension}`);

function allowedTypes(entry: SettingEntry): string {
  const types = typesOf(entry);
  return types.length === 0 ? '' : ` Allowed types: ${types.join(', ')}.`;
}

function fileInput(entry: SettingEntry, attributes: Html): Html {
  return html`<input ${attributes} type="file" accept="${typesOf(entry).join(',')}" required />`;
}

function maxPerControl({ entered }: SettingsForm): number {
  const free = entered.filter(({ entry }) => entry.type !== 'Boolean' && entry.type !== 'File');
  return Math.floor(maxCharacters / Math.max(free.length, 1));
}

function controlView({ entry, text }: EnteredSetting, form: SettingsForm, attributes: Html): Html {
  const option = (value: string, name: string) =>
    html`<option value="${value}" ${value === text && 'selected'}>${name}</option> `;
  switch (entry.type) {
    case 'Boolean':
      return html`<select ${attributes}>
        ${option('true', 'Yes')}${option('false', 'No')}
      </select>`;
    case 'File': {
      const isAllowed = fileFilter(entry);
      const usable = form.uploads
        .filter(({ itemID, itemName }) => isAllowed(itemName) || itemID === text)
        .reverse();
      const isGone = text !== '' && !usable.some(({ itemID }) => itemID === text);
      return html`<select ${attributes}>
        ${option('', usable.length === 0 ? 'No file is uploaded yet' : 'None of these')}
        ${isGone && option(text, text)}
        ${usable.map(({ itemID, itemName, date }) => option(itemID, `${itemName}, uploaded ${formatTime(date)}`))}
      </select>`;
    }
    case 'JSON':
      return html`<textarea ${attributes} rows="4" maxlength="${maxPerControl(form)}">${text}</textarea>`;
    default:
      return html`<input ${attributes} value="${text}" maxlength="${maxPerControl(form)}" />`;
  }
}
