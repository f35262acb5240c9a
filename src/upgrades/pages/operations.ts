// The upgrade procedure as pages that need no script: version → settings → problems, or the plan → start (spec 4.4).
// What has been chosen so far is in the address, and everything is checked as the operation `plan` checks it.
import { formatProblem } from '../../errors.ts';
import { groupBy } from '../../lib/collections.ts';
import type { PageContext } from '../../rest/resource.ts';
import { renderProblems } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import type { Store } from '../../store/store.ts';
import { listUploads, uploads } from '../../uploads/upload.ts';
import { formatCount } from '../../lib/format.ts';
import { signInFirst } from './jobs.ts';
import { type Version, formatVersion } from '../manifest.ts';
import { planToJson, summarisePlan } from '../plan.ts';
import type { PreparedJob } from '../preflight.ts';
import { planUpgrade } from '../upgrade-request.ts';
import type { SettingProblem } from '../settings.ts';
import type { OperationsOptions } from '../operations.rest.ts';
import { deployment, findVersion, currentManifest } from '../deployment.ts';
import {
  type EnteredSetting,
  composeSettings,
  enteredSettings,
  findOverlong,
  labelOfSetting,
  queryOf,
  settingsForm,
} from './settings.ts';
import { versionName } from './versions.ts';

/** As many as a page can hold. */
const mostSteps = 500;

export async function upgradeWizard(
  { store, executor }: OperationsOptions,
  id: string,
  mayStart: boolean,
  page: PageContext<unknown>,
): Promise<Html> {
  const version = findVersion(currentManifest(store), store.read(deployment), id);
  const files = listUploads(store);
  const entered = version ? enteredSettings(version, page.query) : [];
  const upgradeSettings = entered.length === 0 ? undefined : composeSettings(entered);
  const prepared = await planUpgrade(store, executor, { versionManifest: id, upgradeSettings });
  const asksForPlan = entered.length === 0 || page.query.get('step') === 'plan';
  const overlong = version && findOverlong(version, entered);
  const problems: readonly SettingProblem[] = overlong ? [overlong, ...prepared.problems] : prepared.problems;
  // Before the plan is asked for: that a file just uploaded is of no use, or a setting too long to ask with.
  const chosenFiles = entered.filter(({ entry, text }) => entry.type === 'File' && text !== '');
  const early = [overlong?.setting, ...chosenFiles.map(({ entry }) => entry.id)];
  const told = problems.filter(
    ({ setting }) => asksForPlan || setting === undefined || early.includes(setting),
  );
  // Where there is no plan the version itself is to blame, and no setting helps.
  const isBlocked = prepared.plan.steps.length === 0;
  const isPlanned = asksForPlan && problems.length === 0;

  return html`<section aria-labelledby="procedure">
    <h2 id="procedure">Upgrade to ${version ? html`${versionName(version)} (${formatVersion(version)})` : id}</h2>
    ${stepsView(entered.length > 0, isPlanned)}
    ${told.length > 0 && renderProblems({ message: 'This upgrade cannot start:', details: told.map(pageMessage) })}
    ${version && isPlanned && planView(version, prepared, entered, { store, mayStart, page })}
    ${
      version &&
      !isPlanned &&
      !isBlocked &&
      settingsForm(
        {
          version,
          entered,
          uploads: files,
          problems: groupBy(told, ({ setting }) => setting),
          mayUpload: mayStart && page.formToken !== '',
        },
        page,
      )
    }
    <p><a href="${page.here()}">Choose another version</a></p>
  </section>`;
}

function stepsView(hasSettings: boolean, isPlanned: boolean): Html {
  const names = ['Version', ...(hasSettings ? ['Settings'] : []), 'Plan and start'];
  const current = hasSettings && !isPlanned ? 1 : names.length - 1;
  return html`<ol class="steps" aria-label="Steps">
    ${names.map((name, index) => html`<li ${index === current && html`aria-current="step"`}>${name}</li> `)}
  </ol>`;
}

/** The page has no fields `versionManifest` and `upgradeSettings`: the version is chosen before, and each setting has its own. */
function pageMessage(problem: SettingProblem): string {
  const isOnPage = problem.field !== 'versionManifest' && problem.field !== 'upgradeSettings';
  return isOnPage ? formatProblem(problem) : problem.message;
}

function planView(
  version: Version,
  prepared: PreparedJob,
  entered: readonly EnteredSetting[],
  { store, mayStart, page }: { store: Store; mayStart: boolean; page: PageContext<unknown> },
): Html {
  const { plan, from, to, installs, notices } = prepared;
  const { components, newWorkloads } = summarisePlan(plan);
  const figure = (name: string, value: string | Html) =>
    html`<div>
      <dt>${name}</dt>
      <dd>${value}</dd>
    </div> `;
  const others = installs.length - 1;
  return html`<h3>Plan</h3>
    <p>
      From <strong>${from}</strong> to <strong>${to}</strong>${
        others > 0 && ` (together with ${formatCount(others, 'other version')})`
      }. The system is read-only while it runs.
      ${
        version.type === 'release'
          ? 'A release cannot be cancelled once its plan is being executed, and cannot be taken back.'
          : 'It can be cancelled, and can be taken back afterwards.'
      }
    </p>
    <dl class="figures">
      ${figure('Steps', String(plan.steps.length))}
      ${figure('Deployments', newWorkloads > 0 ? `${plan.workloads}, ${newWorkloads} of them new` : String(plan.workloads))}
      ${figure('Components', String(components.length))}
    </dl>
    ${notices.map((notice) => html`<p class="notice">${notice}</p> `)}
    ${entered.length > 0 && settingsSummary(version, entered, store, page)}
    <details>
      <summary>The ${plan.steps.length} steps</summary>
      ${stepTable(prepared)}
    </details>
    ${startForm(version, entered, mayStart, page)}`;
}

function settingsSummary(
  version: Version,
  entered: readonly EnteredSetting[],
  store: Store,
  page: PageContext<unknown>,
): Html {
  const valueView = ({ entry, text }: EnteredSetting) => {
    if (text.trim() === '') return html`<span class="none">none</span>`;
    if (entry.type === 'Boolean') return text === 'true' ? 'Yes' : 'No';
    if (entry.type === 'JSON') return html`<code>${text}</code>`;
    return (entry.type === 'File' && store.get(uploads, text)?.itemName) || text;
  };
  return html`<dl class="record">
      ${entered.map(
        (one) =>
          html`<div>
            <dt>${labelOfSetting(one.entry)}</dt>
            <dd>${valueView(one)}</dd>
          </div> `,
      )}
    </dl>
    <p><a href="${page.here()}?${queryOf(version, entered).toString()}">Change the settings</a></p>`;
}

function stepTable({ plan }: PreparedJob): Html {
  const steps = planToJson(plan);
  const rest = steps.length - mostSteps;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Steps of the plan">
    <table>
      <thead>
        <tr>
          <th scope="col" class="number">Number</th>
          <th scope="col">Step</th>
          <th scope="col">Messages</th>
        </tr>
      </thead>
      <tbody>
        ${steps.slice(0, mostSteps).map(
          ({ seqNum, name, codes }) =>
            html`<tr>
              <td class="number">${seqNum}</td>
              <td>${name}</td>
              <td>${codes.join(', ')}</td>
            </tr> `,
        )}
      </tbody>
    </table>
    ${rest > 0 && html`<p>… and ${rest} more; the operation plan tells all of them.</p>`}
  </div>`;
}

function startForm(
  version: Version,
  entered: readonly EnteredSetting[],
  mayStart: boolean,
  page: PageContext<unknown>,
): Html {
  if (!mayStart) return html`<p class="notice">It cannot be started while the system is read-only.</p>`;
  if (page.formToken === '') return signInFirst(page, 'start the upgrade');
  const hidden = {
    f: 'html',
    token: page.formToken,
    next: page.here(),
    versionManifest: JSON.stringify({ id: version.id }),
    ...(entered.length > 0 && { upgradeSettings: JSON.stringify(composeSettings(entered)) }),
  };
  return html`<form method="post" action="${page.here('upgrade')}">
    ${Object.entries(hidden).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
    )}
    <p><button>Start the upgrade</button></p>
  </form>`;
}
