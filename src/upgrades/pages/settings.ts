// The settings of a version as controls of a form, and what is entered there as `upgradeSettings`.
import type { PageContext } from '../../rest/resource.ts';
import { html, type Html } from '../../rest/html/html.ts';
import type { Upload } from '../../uploads/upload.ts';
import type { Version } from '../manifest.ts';
import { type SettingEntry, type SettingProblem, allowsFile, extensionsOf, settingsOf } from '../settings.ts';
import { versionName } from './versions.ts';

/** What all controls together may hold, and what that may come to once encoded: addresses that are longer get nowhere. */
const mostCharacters = 3000;
const mostEncoded = 12 * 1024;
const elsewhere = 'the operation upgrade takes longer ones.';

export type EnteredSetting = { readonly entry: SettingEntry; readonly text: string };

export const fieldOf = (id: string) => `setting.${id}`;

/** What each control holds: as entered, or as the version presets it. */
export function enteredSettings(version: Version, query: URLSearchParams): EnteredSetting[] {
  return settingsOf(version).userInputs.map((entry) => ({
    entry,
    text: query.get(fieldOf(entry.id)) ?? presetOf(entry),
  }));
}

const pairOf = ({ entry, text }: EnteredSetting): [string, string] => [fieldOf(entry.id), text];

/** The query that brings the page back with what is entered; what is preset comes by itself. */
export function queryOf(version: Version, entered: readonly EnteredSetting[]): URLSearchParams {
  const changed = entered.filter(({ entry, text }) => text !== presetOf(entry));
  return new URLSearchParams([['version', version.id], ...changed.map(pairOf)]);
}

/** The setting to shorten, where the form could not be sent as it is. */
export function findOverlong(
  version: Version,
  entered: readonly EnteredSetting[],
): SettingProblem | undefined {
  const lengthOf = (pairs: [string, string][]) => new URLSearchParams(pairs).toString().length;
  // As browsers send it.
  const pairs = entered.map(({ entry, text }) => pairOf({ entry, text: text.replace(/\r?\n/g, '\r\n') }));
  const length = lengthOf([['version', version.id], ['step', 'plan'], ...pairs]);
  if (length <= mostEncoded) return undefined;
  const lengths = pairs.map((pair) => lengthOf([pair]));
  const longest = entered[lengths.indexOf(Math.max(...lengths))];
  if (!longest) return undefined;
  const setting = longest.entry.id;
  const message = `${setting} is too long for this page: encoded, the settings have ${length} of at most ${mostEncoded} characters; ${elsewhere}`;
  return { field: 'upgradeSettings', setting, message };
}

function presetOf({ type, value, defaultValue }: SettingEntry): string {
  if (type === 'Boolean') return (value ?? defaultValue) === true ? 'true' : 'false';
  if (type === 'JSON') return JSON.stringify(value ?? {}, null, 2);
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}

/** What is blank is left out; what cannot be read stays text, so that the rules refuse it in their words. */
export function composeSettings(entered: readonly EnteredSetting[]) {
  return {
    userInputs: entered
      .filter(({ text }) => text.trim() !== '')
      .map(({ entry, text }) => ({ id: entry.id, value: valueOf(entry, text) })),
  };
}

function valueOf(entry: SettingEntry, text: string): unknown {
  if (entry.type === 'File') return text;
  if (entry.type === 'Boolean' || entry.type === 'JSON') {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  }
  return text === presetOf(entry) ? entry.value : text;
}

/** The shown names of the settings that every release has; a manifest has labels of some other system for them. */
const labels: Readonly<Record<string, { label: string; hint: string }>> = {
  updateToLatestPatch: {
    label: 'Install its latest patch too',
    hint: 'All patches of the release come along in the same job.',
  },
  licenseUpload: { label: 'License file', hint: 'A license for this release.' },
  volumesConfig: {
    label: 'Storage configuration',
    hint: 'For the persistent volumes that the upgrade needs.',
  },
};

export function labelOfSetting({ id, name }: SettingEntry): string {
  return labels[id]?.label ?? (typeof name === 'string' && name !== '' ? name : id);
}

function hintOf({ id, description }: SettingEntry): string {
  return labels[id]?.hint ?? (typeof description === 'string' && description !== id ? description : '');
}

export type SettingsForm = {
  readonly version: Version;
  readonly entered: readonly EnteredSetting[];
  readonly uploads: readonly Upload[];
  /** By the ids of the settings. */
  readonly problems: ReadonlyMap<string | undefined, readonly SettingProblem[]>;
  readonly mayUpload: boolean;
};

/** Submitted with GET to the page itself. Files come first: uploading one loads the page anew. */
export function settingsForm(form: SettingsForm, page: PageContext<unknown>): Html {
  const { version, entered } = form;
  const isFile = ({ entry }: EnteredSetting) => entry.type === 'File';
  const ordered = [...entered.filter(isFile), ...entered.filter((one) => !isFile(one))];
  return html`${form.mayUpload && entered.filter(isFile).map((one) => uploadForm(one, form, page))}
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
  const marks = html`id="${id}" name="${fieldOf(entry.id)}" aria-describedby="${describedBy}"
  ${problems.length > 0 && html`aria-invalid="true"`}`;
  const isJson = entry.type === 'JSON';
  const needed = entry.required === true && entry.type !== 'Boolean';
  return html`<div class="field">
    <label for="${id}">${labelOfSetting(entry)}${needed && html` <span class="required">required</span>`}</label>
    ${controlView(one, form, marks)}
    <p class="hint" id="${id}-hint">
      ${hintOf(entry)} Setting <code>${entry.id}</code>. ${isJson && `At most ${mostIn(form)} characters here; ${elsewhere}`}
    </p>
    ${problems.length > 0 && html`<p class="problem" id="${id}-problem">${problems.join(' ')}</p>`}
    ${entry.type === 'File' && form.mayUpload && uploadControl(entry)}
  </div> `;
}

/** Each control that takes any text has the same share. */
function mostIn({ entered }: SettingsForm): number {
  const free = entered.filter(({ entry }) => entry.type !== 'Boolean' && entry.type !== 'File');
  return Math.floor(mostCharacters / Math.max(free.length, 1));
}

function controlView({ entry, text }: EnteredSetting, form: SettingsForm, marks: Html): Html {
  const option = (value: string, name: string) =>
    html`<option value="${value}" ${value === text && 'selected'}>${name}</option> `;
  switch (entry.type) {
    case 'Boolean':
      return html`<select ${marks}>
        ${option('true', 'Yes')}${option('false', 'No')}
      </select>`;
    case 'File': {
      const fitting = form.uploads
        .filter(({ itemID, itemName }) => allowsFile(entry, itemName) || itemID === text)
        .reverse();
      const isGone = text !== '' && !fitting.some(({ itemID }) => itemID === text);
      return html`<select ${marks}>
        ${option('', fitting.length === 0 ? 'No file is uploaded yet' : 'None of these')}
        ${isGone && option(text, text)}
        ${fitting.map(({ itemID, itemName, size }) => option(itemID, `${itemName}, ${size} bytes (${itemID})`))}
      </select>`;
    }
    case 'JSON':
      return html`<textarea ${marks} rows="4" maxlength="${mostIn(form)}">${text}</textarea>`;
    default:
      return html`<input ${marks} value="${text}" maxlength="${mostIn(form)}" />`;
  }
}

const uploadFormId = (entry: SettingEntry) => `${htmlId(entry)}-upload`;

/** Forms cannot be nested, so the controls name the one they belong to. */
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
    ${extensions.length > 0 && html`<p class="hint">Of the type ${extensions.join(', ')}.</p>`}
  </div>`;
}

/** Comes back to the page as it is, with the new file in place: the kit puts its id where `{itemID}` stands. */
function uploadForm(
  { entry }: EnteredSetting,
  { version, entered }: SettingsForm,
  page: PageContext<unknown>,
): Html {
  const query = queryOf(version, entered);
  query.set(fieldOf(entry.id), '{itemID}');
  const hidden = {
    f: 'html',
    token: page.formToken,
    next: `${page.here()}?${query.toString()}`,
    description: `${labelOfSetting(entry)} for ${versionName(version)}`,
  };
  return html`<form
    id="${uploadFormId(entry)}"
    method="post"
    action="${page.href('uploads', 'upload')}"
    enctype="multipart/form-data"
  >
    ${Object.entries(hidden).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
    )}
  </form>`;
}
