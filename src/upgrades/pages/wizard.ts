// The upgrade wizard, which needs no script: version → settings → plan → start. The address holds the choices made
// so far, and every step makes the same checks as the operation `plan`; the images are looked up with the plan.
import { hiddenFields } from '../../console/action.ts';
import { renderProblems, zoneView } from '../../console/form.ts';
import { renderTime } from '../../console/time.ts';
import { type Row, renderFacts, renderTable } from '../../console/table.ts';
import { groupBy } from '../../lib/collections.ts';
import { formatProblem } from '../../lib/errors.ts';
import { formatCount, formatList, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { formPageField } from '../../rest/fields.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Upload } from '../../uploads/upload.ts';
import { newestJob } from '../jobs/job-table.ts';
import type { OperationsOptions } from '../operations.rest.ts';
import { digestPlan } from '../planning/plan-digest.ts';
import { type Plan, type PlannedHop, planToJson, summarisePlan, updatedWorkloads } from '../planning/plan.ts';
import type { PreparedJob } from '../planning/preflight.ts';
import type { SettingProblem } from '../planning/settings.ts';
import { planUpgrade } from '../planning/upgrade-request.ts';
import { deployment, findVersion, currentManifest } from '../versions/deployment.ts';
import { findPath } from '../versions/hops.ts';
import { type Version, formatVersion } from '../versions/manifest.ts';
import { maintenanceWindows, windowsAt } from '../schedule/windows.ts';
import { figuresView, signInHint } from './job-parts.ts';
import {
  type EnteredSetting,
  composeSettings,
  enteredSettings,
  findOverlong,
  selectUsedFiles,
  settingLabel,
  settingToUpload,
  settingsForm,
  settingsQuery,
} from './settings.ts';
import { versionName } from './versions.ts';

const maxSteps = 500;

/** Each control for a file lists them. */
const maxUploads = 200;

export async function upgradeWizard(
  { store, executor }: OperationsOptions,
  id: string,
  mayStart: boolean,
  page: PageContext<unknown>,
): Promise<Html> {
  const version = findVersion(currentManifest(store), store.read(deployment), id);
  const path = findPath(currentManifest(store), store.read(deployment), id);
  const asked = enteredSettings(path, page.query);
  const uploads = asked.some(({ entry }) => entry.type === 'File') ? await store.uploads.list() : [];
  const used = store.read(newestJob)?.uploads ?? [];
  const entered = selectUsedFiles(
    asked,
    page.query,
    uploads.filter(({ itemID }) => used.includes(itemID)),
  );
  const upgradeSettings = entered.length === 0 ? undefined : composeSettings(entered);
  const asksForPlan = entered.length === 0 || page.query.get('step') === 'plan';
  const values = { versionManifest: id, upgradeSettings };
  // The page of the settings does not wait for registries.
  const prepared = await planUpgrade(store, executor, values, { checkImages: asksForPlan });
  const overlong = version && findOverlong(version, entered);
  const found = prepared.problems.map((problem) => inPageWords(problem, entered));
  const problems: readonly SettingProblem[] = overlong ? [overlong, ...found] : found;
  // Until the reader asks for the plan, the page shows only urgent problems: an unusable upload, or an overlong
  // setting.
  const chosenFiles = entered.filter(({ entry, text }) => entry.type === 'File' && text !== '');
  const urgent = [overlong?.setting, ...chosenFiles.map(({ entry }) => entry.id)];
  const visible = problems.filter(
    ({ setting }) => asksForPlan || setting === undefined || urgent.includes(setting),
  );
  // Without a plan, the version itself is the problem. No setting can solve it.
  const isBlocked = prepared.plan.steps.length === 0;
  const isPlanned = asksForPlan && problems.length === 0;
  const mayUpload = mayStart && page.formToken !== '';

  return html`<section aria-labelledby="upgrade">
    <h2 id="upgrade">Upgrade to ${version ? html`${versionName(version)} (${formatVersion(version)})` : id}</h2>
    ${stepsView(entered.length > 0, isPlanned)}
    ${visible.length > 0 && renderProblems({ message: 'This upgrade cannot start:', details: visible.map(pageMessage) }, { takesFocus: false })}
    ${asksForPlan && !isBlocked && preflightView(prepared, problems, entered, uploads)}
    ${version && isPlanned && planView(version, prepared, entered, { store, uploads, mayStart, page })}
    ${
      version &&
      !isPlanned &&
      !isBlocked &&
      settingsForm(
        {
          version,
          entered,
          uploads: uploads.slice(-maxUploads),
          problems: groupBy(visible, ({ setting }) => setting),
          upload: mayUpload ? settingToUpload(entered, page.query.get('upload')) : undefined,
          mayUpload,
        },
        page,
      )
    }
    <p><a href="${page.here('available')}">Choose another version</a></p>
  </section>`;
}

function stepsView(hasSettings: boolean, isPlanned: boolean): Html {
  const names = ['Version', ...(hasSettings ? ['Settings'] : []), 'Plan and start'];
  const current = hasSettings && !isPlanned ? 1 : names.length - 1;
  return html`<ol class="steps" aria-label="Steps">
    ${names.map((name, index) => html`<li ${index === current && html`aria-current="step"`}>${name}</li> `)}
  </ol>`;
}

type Check = { readonly name: string; readonly result: keyof typeof results; readonly text: string };

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
  uploads: readonly Upload[],
): Html {
  const isSimulated = plan.steps.some(({ performedBy }) => performedBy === 'simulation');
  const check = (name: string, fields: readonly (string | undefined)[], passed: string): Check => {
    const failures = problems.filter(({ field }) => fields.includes(field)).length;
    return failures === 0
      ? { name, result: 'passed', text: passed }
      : { name, result: 'failed', text: `${formatCount(failures, 'problem')}, listed above.` };
  };
  const fileChecks = entered.flatMap(({ entry, text }): Check[] => {
    const upload = entry.type === 'File' && uploads.find(({ itemID }) => itemID === text);
    if (!upload || problems.some(({ setting }) => setting === entry.id)) return [];
    const content = isSimulated
      ? 'Its content is not checked: simulated.'
      : 'Steward does not check its content.';
    return [{ name: settingLabel(entry), result: 'unchecked', text: `${upload.itemName}. ${content}` }];
  });
  const checks: Check[] = [
    check('Version', ['versionManifest', undefined], `${to} can be installed on ${from}.`),
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
          check('Deployment', ['cluster'], `${formatCount(plan.workloads, 'deployment')} can be updated.`),
          check('Images', ['images'], 'No image is missing.'),
        ]),
    ...notices.map((text): Check => ({ name: 'Notice', result: 'warning', text })),
  ];
  return html`<h3>Preflight</h3>
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

/** On the page, a file is chosen and not named by its id. */
function inPageWords(problem: SettingProblem, entered: readonly EnteredSetting[]): SettingProblem {
  const one = entered.find(({ entry }) => entry.id === problem.setting);
  const isMissing = one?.entry.type === 'File' && one.text === '';
  return isMissing ? { ...problem, message: `${settingLabel(one.entry)}: choose a file.` } : problem;
}

/** The page has no fields of these names: it asks for the version first and has one control per setting. */
function pageMessage(problem: SettingProblem): string {
  const isOnPage = problem.field !== 'versionManifest' && problem.field !== 'upgradeSettings';
  return isOnPage ? formatProblem(problem) : problem.message;
}

type PlanOptions = {
  readonly store: ReadableStore;
  readonly uploads: readonly Upload[];
  readonly mayStart: boolean;
  readonly page: PageContext<unknown>;
};

function planView(
  version: Version,
  prepared: PreparedJob,
  entered: readonly EnteredSetting[],
  { store, uploads, mayStart, page }: PlanOptions,
): Html {
  const { plan, from, to } = prepared;
  const { components, newWorkloads } = summarisePlan(plan);
  const others = plan.hops
    .flatMap(({ installs }) => installs)
    .slice(0, -1)
    .flatMap((id) => findVersion(currentManifest(store), store.read(deployment), id) ?? []);
  const hasRelease = [version, ...others].some(({ type }) => type === 'release');
  return html`<h3>Plan</h3>
    <p>
      From <strong>${from}</strong> to <strong>${to}</strong>${
        others.length > 0 && `, through ${formatList(others.map(formatVersion))}`
      }. The system is read-only while it runs.
      ${explainCancelling(hasRelease, plan)}
    </p>
    ${figuresView([
      { label: 'Tasks', value: String(plan.steps.length) },
      {
        label: 'Deployments',
        value: newWorkloads > 0 ? `${plan.workloads}, ${newWorkloads} of them new` : String(plan.workloads),
      },
      { label: 'Components', value: String(components.length) },
    ])}
    ${plan.hops.length > 1 && hopsView(plan.hops)}
    ${entered.length > 0 && settingsSummary(version, entered, uploads, page)}
    ${startForm(version, prepared, entered, { store, mayStart, hasRelease, page })}
    <details>
      <summary>The images of ${formatCount(plan.workloads, 'deployment')}</summary>
      ${imageTable(prepared)}
    </details>
    <details>
      <summary>The ${plan.steps.length} tasks</summary>
      ${stepTable(prepared)}
    </details>`;
}

function explainCancelling(hasRelease: boolean, { hops }: Plan): string {
  if (hops.length > 1)
    return 'It can be cancelled before the first step and between two steps. Releases cannot be rolled back.';
  return hasRelease
    ? 'A release cannot be cancelled once its plan is being executed, and cannot be rolled back.'
    : 'It can be cancelled, and can be rolled back afterwards.';
}

function hopsView(hops: readonly PlannedHop[]): Html {
  return html`<p>The job performs these upgrades, its steps, one after the other:</p>
    <ol class="hops" aria-label="Steps">
      ${hops.map(({ from, to }) => html`<li>${from} → <strong>${to}</strong></li> `)}
    </ol>`;
}

function imageTable({ plan }: PreparedJob): Html {
  const moves = updatedWorkloads(plan).flatMap(({ name, component, parts }) =>
    parts.map(({ image, formerImage }) => ({ name, component, image, before: formerImage })),
  );
  const rest = moves.length - maxSteps;
  const rows = moves
    .slice(0, maxSteps)
    .map(({ name, component, image, before }): Row => [
      name,
      component,
      html`${before === null ? html`<span class="none">new</span>` : html`<code>${before}</code>`} → <code>${image}</code>`,
    ]);
  return html`${renderTable('Images', ['Deployment', 'Component', 'Image'], rows)}
  ${rest > 0 && html`<p>… and ${formatNumber(rest)} more.</p>`}`;
}

function settingsSummary(
  version: Version,
  entered: readonly EnteredSetting[],
  uploads: readonly Upload[],
  page: PageContext<unknown>,
): Html {
  const valueView = ({ entry, text }: EnteredSetting) => {
    if (text.trim() === '') return html`<span class="none">none</span>`;
    if (entry.type === 'Boolean') return text === 'true' ? 'Yes' : 'No';
    if (entry.type === 'JSON') return html`<code>${text}</code>`;
    const upload = entry.type === 'File' && uploads.find(({ itemID }) => itemID === text);
    return upload ? upload.itemName : text;
  };
  return html`${renderFacts(entered.map((one) => [settingLabel(one.entry), valueView(one)]))}
    <p><a href="${page.here()}?${settingsQuery(version, entered).toString()}">Change the settings</a></p>`;
}

function stepTable({ plan }: PreparedJob): Html {
  const steps = planToJson(plan);
  const rest = steps.length - maxSteps;
  const rows = steps
    .slice(0, maxSteps)
    .map(({ seqNum, name, codes, performedBy, template }): Row => [
      String(seqNum),
      name,
      template === undefined ? performedBy : `${performedBy} (${template})`,
      codes.join(', '),
    ]);
  return html`${renderTable('Tasks of the plan', ['Number', 'Task', 'Performed by', 'Messages'], rows)}
  ${rest > 0 && html`<p>… and ${rest} more; the operation plan returns all of them.</p>`}`;
}

function startForm(
  version: Version,
  prepared: PreparedJob,
  entered: readonly EnteredSetting[],
  {
    store,
    mayStart,
    hasRelease,
    page,
  }: Pick<PlanOptions, 'store' | 'mayStart' | 'page'> & { hasRelease: boolean },
): Html {
  if (!mayStart) return html`<p class="notice">It cannot be started while the system is read-only.</p>`;
  if (page.formToken === '') return signInHint(page, 'start the upgrade');
  const fields = {
    f: 'html',
    token: page.formToken,
    next: page.href('system', 'jobs', '{jobId}'),
    [formPageField]: `${page.here()}?${page.query.toString()}`,
    versionManifest: JSON.stringify({ id: version.id }),
    planDigest: digestPlan(prepared),
    ...(entered.length > 0 && { upgradeSettings: JSON.stringify(composeSettings(entered)) }),
  };
  const to = prepared.to ?? formatVersion(version);
  const form = (id: string, start: Html | false, label: string) =>
    html`<form method="post" action="${page.here('upgrade')}">
      ${hiddenFields(fields)} ${start} ${hasRelease && confirmField(id, to)} ${windowsBox(id, store, page)}
      <p><button>${label}</button></p>
    </form>`;
  return html`${form('now', false, 'Start the upgrade')}
    <details>
      <summary>Start at …</summary>
      ${form('later', startAtControl, 'Schedule the upgrade')}
    </details>`;
}

const startAtControl = html`<div class="field">
  <label for="startAt">Start at${zoneView}</label>
  <input id="startAt" name="startAt" type="datetime-local" required aria-describedby="startAt-hint" />
  <p class="hint" id="startAt-hint">
    The upgrade is checked again then, and starts only if its plan is the same.
  </p>
</div>`;

/** Only if there are windows: a start at another time may be outside of them too. */
function windowsBox(id: string, store: ReadableStore, { href, now }: PageContext<unknown>): Html | false {
  const windows = store.read(maintenanceWindows);
  if (windows.length === 0) return false;
  const state = windowsAt(windows, now);
  const opens =
    !state.open && state.opensAt !== null && html` The next one opens at ${renderTime(state.opensAt)}.`;
  return html`<fieldset class="field boxes">
    <legend>Maintenance windows</legend>
    <p>
      ${state.open ? 'A window is open now.' : html`No window is open now.${opens}`} See
      <a href="${href('system', 'upgrades', 'config')}">all windows</a>.
    </p>
    <div>
      <input type="checkbox" id="ignore-${id}" name="ignoreWindows" value="true" />
      <label for="ignore-${id}">Start outside of the windows too</label>
    </div>
  </fieldset>`;
}

/** The browser requires the text. The server ignores it. */
function confirmField(id: string, to: string): Html {
  return html`<div class="field">
    <label for="confirm-${id}">Type ${to} to confirm: there is no way back</label>
    <input id="confirm-${id}" name="confirmVersion" required pattern="${to.replaceAll('.', '[.]')}" title="${to}" autocomplete="off" />
  </div>`;
}
