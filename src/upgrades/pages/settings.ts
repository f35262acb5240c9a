// The form for the settings of a version, and the conversion of its entries to `upgradeSettings`.
import type { PageContext } from '../../rest/resource.ts';
import { html, type Html } from '../../rest/html/html.ts';
import type { Upload } from '../../uploads/upload.ts';
import type { Version } from '../manifest.ts';
import { type SettingEntry, type SettingProblem, extensionsOf, fileFilter, settingsOf } from '../settings.ts';
import { versionName } from './versions.ts';

/** The address contains the form. These limits, before and after encoding, keep the address acceptable to servers and proxies. */
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
    label: 'Install its latest patch too',
    hint: 'Installs all patches of the release in the same job.',
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

export type SettingsForm = {
  readonly version: Version;
  readonly entered: readonly EnteredSetting[];
  readonly uploads: readonly Upload[];
  readonly problems: ReadonlyMap<string | undefined, readonly SettingProblem[]>;
  readonly mayUpload: boolean;
};

/** File settings come first, because an upload reloads the page and loses entries that were not sent. */
export function settingsForm(form: SettingsForm, page: PageContext<unknown>): Html {
  const { version, entered } = form;
  const isFile = ({ entry }: EnteredSetting) => entry.type === 'File';
  const ordered = [...entered.filter(isFile), ...entered.filter((one) => !isFile(one))];
  const query = settingsQuery(version, entered).toString();
  return html`${form.mayUpload && entered.filter(isFile).map((one) => uploadForm(one, version, query, page))}
    <form method="get" action="${page.here()}">
      <input type="hidden" name="version" value="${version.id}" />
      <input type="hidden" name="step" value="plan" />
      ${ordered.map((one) => settingView(one, form))}
      <p><button>Check the settings and show the plan</button></p>
    </form>`;
}

const htmlId = ({ seqNum }: SettingEntry) => `setting-${seqNum}`;

function settingView(one: EnteredSetting, form: SettingsForm): Html {
  const { entry } = one;
  const id = htmlId(entry);
  const problems = (form.problems.get(entry.id) ?? []).map(({ message }) => message);
  const describedBy = [`${id}-hint`, ...(problems.length > 0 ? [`${id}-problem`] : [])].join(' ');
  const attributes = html`id="${id}" name="${fieldName(entry.id)}" aria-describedby="${describedBy}"
  ${problems.length > 0 && html`aria-invalid="true"`}`;
  const isJson = entry.type === 'JSON';
  const needed = entry.required === true && entry.type !== 'Boolean';
  return html`<div class="field">
    <label for="${id}">${settingLabel(entry)}${needed && html` <span class="required">required</span>`}</label>
    ${controlView(one, form, attributes)}
    <p class="hint" id="${id}-hint">
      ${settingHint(entry)} Setting <code>${entry.id}</code>. ${isJson && `At most ${maxPerControl(form)} characters here; ${useOperation}`}
    </p>
    ${problems.length > 0 && html`<p class="problem" id="${id}-problem">${problems.join(' ')}</p>`}
    ${entry.type === 'File' && form.mayUpload && uploadControl(entry)}
  </div> `;
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
        ${usable.map(({ itemID, itemName, size }) => option(itemID, `${itemName}, ${size} bytes (${itemID})`))}
      </select>`;
    }
    case 'JSON':
      return html`<textarea ${attributes} rows="4" maxlength="${maxPerControl(form)}">${text}</textarea>`;
    default:
      return html`<input ${attributes} value="${text}" maxlength="${maxPerControl(form)}" />`;
  }
}

const uploadFormId = (entry: SettingEntry) => `${htmlId(entry)}-upload`;

/** HTML forms cannot be nested, so these controls refer to a form outside of this one. */
function uploadControl(entry: SettingEntry): Html {
  const id = `${htmlId(entry)}-file`;
  const extensions = extensionsOf(entry).map((extension) => `.${extension}`);
  return html`<div class="upload">
    <label for="${id}">Upload a file</label>
    <input
      id="${id}"
      type="file"
      name="itemFile"
      form="${uploadFormId(entry)}"
      accept="${extensions.join(',')}"
      required
    />
    <button class="quiet" form="${uploadFormId(entry)}">Upload</button>
    ${extensions.length > 0 && html`<p class="hint">Allowed types: ${extensions.join(', ')}.</p>`}
  </div>`;
}

/** The server replaces `{itemID}` in `next`, so that the browser returns to this page with the new file selected. */
function uploadForm(
  { entry }: EnteredSetting,
  version: Version,
  settings: string,
  page: PageContext<unknown>,
): Html {
  const query = new URLSearchParams(settings);
  query.set(fieldName(entry.id), '{itemID}');
  const fields = {
    f: 'html',
    token: page.formToken,
    next: `${page.here()}?${query.toString()}`,
    description: `${settingLabel(entry)} for ${versionName(version)}`,
  };
  return html`<form
    id="${uploadFormId(entry)}"
    method="post"
    action="${page.href('uploads', 'upload')}"
    enctype="multipart/form-data"
  >
    ${hiddenInputs(fields)}
  </form>`;
}

export function hiddenInputs(fields: Readonly<Record<string, string>>): Html[] {
  return Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
  );
}
