// The upgrade wizard, which needs no script: version → settings → plan → start. It is the page of the operations `plan`
// and `upgrade`: the form of the settings is sent to `plan`, whose page has the form that is sent to `upgrade`. Every step
// makes the same checks as `plan`; the images are looked up with the plan.
import { formHref, hiddenFields } from '../../console/action.ts';
import { type ProblemList, fieldView, problemsWith, renderProblems } from '../../console/form.ts';
import { type Row, renderFacts, renderTable } from '../../console/table.ts';
import { formatProblem } from '../../lib/errors.ts';
import { formatCount, formatList, formatNumber } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import { type Field, boxName, describeField, readFields } from '../../rest/fields.ts';
import { jsonObject, reference } from '../../rest/field-types.ts';
import { ownPath } from '../../rest/request.ts';
import type { FormPage } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { listUploads } from '../../uploads/upload.ts';
import type { Executor } from '../executors/executor.ts';
import { newestJob } from '../jobs/job-table.ts';
import { type Plan, digestPlan, planToJson, updatedWorkloads } from '../planning/plan.ts';
import { type PreparedJob, hasRelease, planUpgrade } from '../starting/preflight.ts';
import { type SettingProblem, settingsOf } from '../planning/settings.ts';
import type { Workload } from '../executors/workloads.ts';
import { currentManifest, deployment, findVersion } from '../versions/deployment.ts';
import { findPathToInstall } from '../versions/hops.ts';
import { type Version, formatVersion } from '../versions/manifest.ts';
import { type MaintenanceWindow, maintenanceWindows, windowsAt } from '../schedule/windows.ts';
import {
  type EnteredSetting,
  enteredSettings,
  settingSummary,
  settingView,
  toUpgradeSettings,
} from './settings.ts';
import { linkJob } from './job-parts.ts';
import { startButton } from './start-fields.ts';
import { versionName, wizardHref } from './versions.ts';
import { windowText } from './windows.ts';

const maxSteps = 500;

const fields = { versionManifest: reference(), upgradeSettings: jsonObject().optional() };

/** The fields that the wizard does not ask for. */
const otherFields = ['licenseFile', 'updateToLatestPatch', 'versionManifestFile'];

type StartFields = Readonly<Record<'startAt' | 'ignoreWindows' | 'confirmVersion', Field>>;

type WizardOptions = {
  readonly store: ReadableStore;
  readonly executor: Executor;
  readonly start: StartFields;
};

export function wizardTitle(store: ReadableStore, entered: FormPage['entered']): string {
  const { versionManifest: id } = readFields(fields, entered).values;
  const version =
    id === undefined ? undefined : findVersion(currentManifest(store), store.read(deployment), id);
  return version ? `Upgrade to ${versionName(version)}` : 'Upgrade';
}

/** Undefined for a form that is not one of the wizard. `known` is the plan for what was entered. */
export async function upgradeWizard(
  { store, executor, start }: WizardOptions,
  page: FormPage,
  step: 'settings' | 'plan',
  known?: PreparedJob,
): Promise<Html | undefined> {
  const { versionManifest: id, upgradeSettings: given } = readFields(fields, page.entered).values;
  if (id === undefined || otherFields.some((name) => name in page.entered)) return undefined;
  const version = findVersion(currentManifest(store), store.read(deployment), id);
  const path = findPathToInstall(currentManifest(store), store.read(deployment), id);
  const entries = settingsOf(...path).userInputs;
  const uploads = entries.some(({ type }) => type === 'File') ? listUploads(store) : [];
  const used = store.read(newestJob)?.uploads ?? [];
  const entered = enteredSettings(entries, given, { uploads, used });
  const asksForPlan = entries.length === 0 || step === 'plan';
  const upgradeSettings = entries.length === 0 ? undefined : toUpgradeSettings(entered);
  // The page of the settings does not wait for registries.
  const options = { checkImages: asksForPlan };
  const prepared =
    known ?? (await planUpgrade(store, executor, { versionManifest: id, upgradeSettings }, options));
  const problems = prepared.problems.map((problem) => inPageWords(problem, entered));
  // Until the reader asks for the plan, a setting has no problem on the page, except an unusable upload.
  const chosenFiles = entered.filter(({ entry, text }) => entry.type === 'File' && text !== '');
  const urgent = chosenFiles.map(({ entry }) => entry.id);
  const visible = problems.filter(
    ({ setting }) => asksForPlan || setting === undefined || urgent.includes(setting),
  );
  // Without a plan, the version itself is the problem. No setting can solve it.
  const isBlocked = prepared.plan.steps.length === 0;
  const isPlanned = asksForPlan && problems.length === 0;
  // The page has no fields of these names: it asks for the version first and has one control per setting.
  const details = visible.map((problem) =>
    ['versionManifest', 'upgradeSettings'].includes(problem.field ?? '')
      ? problem.message
      : linkJob(formatProblem(problem), store, page),
  );
  const found = { message: 'This upgrade cannot start:', details };
  // What concerns the start stands beside its button. The plan lists the other problems again.
  const isOfStart = (_detail: string, index: number) => (page.error?.problems[index]?.field ?? '') in start;
  const error = page.error && { message: page.error.message, details: page.error.details.filter(isOfStart) };
  const settings =
    version !== undefined && entered.length > 0 && settingsForm(version, entered, visible, page);

  return html`${stepsView(entered.length > 0, isPlanned)}
    ${visible.length > 0 ? renderProblems(found, { takesFocus: error !== undefined }) : error && !isPlanned && renderProblems(error)}
    ${asksForPlan && !isBlocked && preflightView(prepared, problems, entered, windowCheck(store, page.now))}
    ${version && isPlanned && planView(version, prepared, entered, { store, settings, start, error, page })}
    ${!isPlanned && !isBlocked && settings}
    <p><a href="${page.href('system', 'upgrades', 'available')}">Choose another version</a></p>`;
}

/** Without a session, the form would be refused. */
function settingsForm(
  version: Version,
  entered: readonly EnteredSetting[],
  problems: readonly SettingProblem[],
  page: FormPage,
): Html | false {
  if (page.formToken === '') return false;
  const hidden = {
    f: 'html',
    token: page.formToken,
    versionManifest: JSON.stringify({ id: version.id }),
    [boxName('upgradeSettings')]: '',
  };
  return html`<form method="post" action="${page.href('system', 'upgrades', 'plan')}">
    ${hiddenFields(hidden)}
    ${entered.map(
      (one) => html`${settingView(one, problems)}
      ${one.entry.type === 'File' && !page.isReadOnly && uploadLink(version, one, entered, page)}`,
    )}
    <p><button>Show the plan</button></p>
  </form>`;
}

/** Leads back to the form, with the new file and what was entered when the form was shown, if an address can hold it. */
function uploadLink(
  version: Version,
  one: EnteredSetting,
  entered: readonly EnteredSetting[],
  page: FormPage,
): Html {
  const chosen = entered.map((other) => (other === one ? { ...other, text: '{itemID}' } : other));
  const upgradeSettings = JSON.stringify(toUpgradeSettings(chosen));
  const fields = {
    description: `${one.field.label} for ${versionName(version)}`,
    next: ownPath(wizardHref(page, version, { upgradeSettings })) ?? wizardHref(page, version),
  };
  return html`<p>
    <a href="${formHref(page, page.href('uploads', 'upload'), fields)}">Upload a file …</a>
    <span class="hint">Changes on this page are not kept.</span>
  </p>`;
}

function stepsView(hasSettings: boolean, isPlanned: boolean): Html {
  const names = ['Version', ...(hasSettings ? ['Settings'] : []), 'Plan and start'];
  const current = hasSettings && !isPlanned ? 1 : names.length - 1;
  return html`<ol class="steps" aria-label="Steps">
    ${names.map((name, index) => html`<li ${index === current && html`aria-current="step"`}>${name}</li> `)}
  </ol>`;
}

type Check = { readonly name: string; readonly result: keyof typeof results; readonly text: string | Html };

const results = {
  unchecked: { label: 'Not checked', className: 'busy' },
  passed: { label: 'Passed', className: 'good' },
  warning: { label: 'Warning', className: 'warn' },
  failed: { label: 'Failed', className: 'bad' },
};

/** What was checked before the start. The failures are also listed above, beside the settings that cause them. */
function preflightView(
  { plan, from, to, notices }: PreparedJob,
  problems: readonly SettingProblem[],
  entered: readonly EnteredSetting[],
  window: readonly Check[],
): Html {
  const isSimulated = plan.steps.some(({ performedBy }) => performedBy === 'simulation');
  const check = (name: string, fields: readonly (string | undefined)[], passed: string): Check => {
    const failures = problems.filter(({ field }) => fields.includes(field)).length;
    return failures === 0
      ? { name, result: 'passed', text: passed }
      : { name, result: 'failed', text: `${formatCount(failures, 'problem')}, listed above.` };
  };
  const fileChecks = entered
    .filter(({ entry, text }) => entry.type === 'File' && text !== '')
    .filter(({ entry }) => problems.every(({ setting }) => setting !== entry.id))
    .map((one): Check => {
      const content = isSimulated
        ? 'Its content is not checked: simulated.'
        : 'Steward does not check its content.';
      return { name: one.field.label, result: 'unchecked', text: html`${settingSummary(one)}. ${content}` };
    });
  const checks: Check[] = [
    check('Version', ['versionManifest'], `${to} can be installed on ${from}.`),
    ...(problems.some(({ field }) => field === undefined) ? [check('Other jobs', [undefined], '')] : []),
    ...(entered.length > 0
      ? [check('Settings', ['upgradeSettings', 'licenseFile'], 'All required settings have a value.')]
      : []),
    ...fileChecks,
    ...(isSimulated
      ? [
          {
            name: 'Deployment and images',
            result: 'unchecked',
            text: 'Simulated: no cluster is read.',
          } as const,
        ]
      : [
          check(
            'Deployment',
            ['cluster'],
            `${formatCount(namesOf(updatedWorkloads(plan)).size, 'deployment')} can be updated.`,
          ),
          check('Images', ['images'], 'No image is missing.'),
        ]),
    ...window,
    ...notices.map((text): Check => ({ name: 'Notice', result: 'warning', text })),
  ];
  return html`<h2>Preflight</h2>
    <ul class="checks">
      ${checks.map(
        ({ name, result, text }) =>
          html`<li>
            <span class="state ${results[result].className}">${results[result].label}</span>
            <strong>${name}</strong> ${text}
          </li> `,
      )}
    </ul>`;
}

/** Nothing if there are no windows. */
function windowCheck(store: ReadableStore, now: number): Check[] {
  const windows = store.read(maintenanceWindows);
  const text = windowText(windows, now);
  const result = windowsAt(windows, now).open ? 'passed' : 'warning';
  return text === undefined ? [] : [{ name: 'Window', result, text }];
}

/** On the page, a file is chosen and not named by its id. */
function inPageWords(problem: SettingProblem, entered: readonly EnteredSetting[]): SettingProblem {
  const one = entered.find(({ entry }) => entry.id === problem.setting);
  const isMissing = one?.entry.type === 'File' && one.text === '';
  return isMissing ? { ...problem, message: `${one.field.label}: choose a file.` } : problem;
}

type PlanOptions = {
  readonly store: ReadableStore;
  /** The form that changes the settings. */
  readonly settings: Html | false;
  readonly start: StartFields;
  /** Why the start was refused. */
  readonly error: ProblemList | undefined;
  readonly page: FormPage;
};

function planView(
  version: Version,
  prepared: PreparedJob,
  entered: readonly EnteredSetting[],
  { store, settings, ...options }: PlanOptions,
): Html {
  const { plan, from, to } = prepared;
  const moved = updatedWorkloads(plan);
  const components = new Set(moved.map(({ component }) => component));
  const isNew = ({ parts }: Workload) => parts.every(({ formerImage }) => formerImage === null);
  const deployments = namesOf(moved).size;
  const added = namesOf(moved.filter(isNew)).size;
  const others = plan.hops
    .flatMap(({ installs }) => installs)
    .slice(0, -1)
    .flatMap((id) => findVersion(currentManifest(store), store.read(deployment), id) ?? []);
  return html`<h2>Plan</h2>
    <p>
      From <strong>${from}</strong> to <strong>${to}</strong>${
        others.length > 0 && `, through ${formatList(others.map(formatVersion))}`
      }. The system is read-only while it runs.
      ${explainCancelling(prepared)}
    </p>
    ${renderFacts(
      [
        ['Steps', String(plan.steps.length)],
        ...(plan.workloads > deployments ? [['Updates', String(plan.workloads)] as const] : []),
        ['Deployments', `${deployments}${added > 0 ? `, ${added} of them new` : ''}`],
        ['Components', String(components.size)],
      ],
      'figures',
    )}
    ${entered.length > 0 && renderFacts(entered.map((one) => [one.field.label, settingSummary(one)]))}
    ${
      settings &&
      html`<details class="further">
        <summary>Change the settings</summary>
        ${settings}
      </details>`
    }
    ${startForm(version, prepared, entered, { ...options, windows: store.read(maintenanceWindows) })}
    <details>
      <summary>The images of ${formatUpdates(plan)}</summary>
      ${imageTable(prepared)}
    </details>
    <details>
      <summary>The ${plan.steps.length} steps</summary>
      ${stepTable(prepared)}
    </details>`;
}

const namesOf = (workloads: readonly Workload[]) => new Set(workloads.map(({ name }) => name));

/** Several versions may update the same deployment. */
function formatUpdates(plan: Plan): string {
  const { size } = namesOf(updatedWorkloads(plan));
  const updates = plan.workloads > size ? `${formatCount(plan.workloads, 'update')} of ` : '';
  return `${updates}${formatCount(size, 'deployment')}`;
}

function explainCancelling(prepared: PreparedJob): string {
  if (prepared.plan.hops.length > 1)
    return 'It can be cancelled before it installs the first version and between two versions. Releases cannot be rolled back.';
  if (prepared.from === prepared.to)
    return 'It can be cancelled. It repairs the installed version, so there is no way back.';
  return hasRelease(prepared)
    ? 'A release cannot be cancelled once its plan is being executed, and cannot be rolled back.'
    : 'It can be cancelled, and can be rolled back afterwards.';
}

function imageTable({ plan }: PreparedJob): Html {
  const rows = updatedWorkloads(plan).flatMap(({ name, component, parts }) =>
    parts.map(({ image, formerImage: before }): Row => [
      name,
      component,
      html`${before === null ? html`<span class="none">new</span>` : html`<code>${before}</code>`} → <code>${image}</code>`,
    ]),
  );
  return cutTable('Images', ['Deployment', 'Component', 'Image'], rows, '.');
}

function stepTable({ plan }: PreparedJob): Html {
  const rows = planToJson(plan).map(({ seqNum, name, codes, performedBy, template }): Row => [
    String(seqNum),
    name,
    template === undefined ? performedBy : `${performedBy} (${template})`,
    codes.join(', '),
  ]);
  const columns = ['Number', 'Step', 'Performed by', 'Messages'];
  return cutTable('Steps of the plan', columns, rows, '; the operation plan returns all of them.');
}

function cutTable(label: string, columns: readonly string[], rows: readonly Row[], end: string): Html {
  const rest = rows.length - maxSteps;
  return html`${renderTable(label, columns, rows.slice(0, maxSteps))}
  ${rest > 0 && html`<p>… and ${formatNumber(rest)} more${end}</p>`}`;
}

type StartOptions = Pick<PlanOptions, 'start' | 'error' | 'page'> & {
  readonly windows: readonly MaintenanceWindow[];
};

function startForm(
  version: Version,
  prepared: PreparedJob,
  entered: readonly EnteredSetting[],
  { start, error, page, windows }: StartOptions,
): Html | false {
  if (page.isReadOnly) return html`<p class="notice">It cannot be started while the system is read-only.</p>`;
  if (page.formToken === '') return false;
  const fields = {
    f: 'html',
    token: page.formToken,
    next: page.href('system', 'jobs', '{jobId}'),
    versionManifest: JSON.stringify({ id: version.id }),
    planDigest: digestPlan(prepared),
    ...(entered.length > 0 && { upgradeSettings: JSON.stringify(toUpgradeSettings(entered)) }),
  };
  const view = (name: keyof StartFields, described = {}) => {
    const problems = problemsWith(name, page.error);
    const field = { ...describeField(start[name]), ...described };
    return fieldView(name, field, { entered: page.entered[name], problems });
  };
  const label = `Type ${prepared.to ?? formatVersion(version)} to confirm: there is no way back`;
  return html`<form method="post" action="${page.href('system', 'upgrades', 'upgrade')}">
    ${hiddenFields(fields)} ${view('startAt')} ${view('ignoreWindows')}
    <p class="hint">At a later time, the upgrade is checked again, and starts only if its plan is the same.</p>
    ${hasRelease(prepared) && view('confirmVersion', { label, description: '', isRequired: true })} ${error && renderProblems(error)}
    <p>${startButton(page.entered.startAt, { windows, now: page.now })}</p>
  </form>`;
}
