// The page of the versions: what can be installed, which versions the last import has added, and the manifest itself
// to import and to download.
import { linkButton } from '../../console/action.ts';
import { renderEmpty, renderListPage, selectEntries } from '../../console/list.ts';
import { renderTime } from '../../console/time.ts';
import { formatCount, formatList, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { asJson } from '../../lib/json.ts';
import { isHttpUrl, truncate } from '../../lib/text.ts';
import type { Option, PageContext } from '../../rest/view.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import { newestJob } from '../jobs/job-table.ts';
import { findJobToRepair, reasonNotToStart, repairs } from '../jobs/job-to-repair.ts';
import {
  type Deployment,
  baseManifest,
  currentManifest,
  deployment,
  importedManifest,
  newestInstalled,
  rollbackTargets,
} from '../versions/deployment.ts';
import type { Drift } from '../starting/drift.ts';
import { countMovesOfRollbacks } from '../versions/moves.ts';
import { availableVersions } from '../versions/hops.ts';
import { isListed, nothingFollows, startingVersions } from '../versions/installed-version.ts';
import { type Version, formatVersion } from '../versions/manifest.ts';
import { linkJob, repairText } from './job-parts.ts';
import { windowLine } from './windows.ts';

/** A page repeats the name for each setting. */
const maxName = 200;

export function versionName(version: Version): string {
  const { name } = asJson(version);
  return typeof name === 'string' && name !== ''
    ? truncate(name, maxName)
    : `${version.type} ${version.version}`;
}

/** In a sentence. */
export function baseManifestName(reader: Reader): string {
  return reader.read(baseManifest).source === 'file'
    ? 'the manifest of MANIFEST_FILE'
    : 'the built-in manifest';
}

/** The versions that a rollback can return to, the newest first, and what it removes. */
export function rollbackOptions(present: Deployment | null): Option[] {
  if (!present) return [];
  const targets = rollbackTargets(present);
  const moves = countMovesOfRollbacks(present);
  // The first one removes one patch.
  return targets.map((version, index) => {
    const removed = formatRemoved(present.patches, targets.length - index - 1);
    const containers = formatCount(moves.get(version.id) ?? 0, 'container');
    return {
      value: JSON.stringify({ id: version.id }),
      label: `${formatVersion(version)}: removes ${removed}, puts back ${containers}`,
    };
  });
}

const maxRemoved = 3;

/** The patches from the index `first` on. */
function formatRemoved(patches: readonly Version[], first: number): string {
  const names = patches
    .slice(first, first + maxRemoved)
    .map(versionName)
    .join(', ');
  const rest = patches.length - first - maxRemoved;
  return rest > 0 ? `${names} and ${formatNumber(rest)} more` : names;
}

export function versionsView(store: ReadableStore, page: PageContext<unknown>): Html {
  const versions = availableVersions(store);
  const failed = findJobToRepair(store);
  const blocked = failed
    ? repairText(failed, store.read(newestJob)?.id === failed.id)
    : reasonNotToStart(store, { operation: 'upgrade', targetId: '' });
  const imported = store.read(importedManifest);
  const list = selectEntries(versions, page, {});
  const isBlocked = ({ version }: AvailableVersion) =>
    failed && !repairs(store, failed, { operation: 'upgrade', targetId: version.id });
  const canStart = (one: AvailableVersion) => one.path.length > 0 && !isBlocked(one);
  return html`${blocked !== undefined && html`<p class="notice">${linkJob(blocked, store, page)}</p>`} ${windowLine(store, page)}
    ${renderListPage(page, list, {
      noun: 'version',
      label: 'Available versions',
      count: html`${formatCount(versions.length, 'version')}, from
      ${imported ? html`the manifest imported at ${renderTime(imported.importedAt)}` : baseManifestName(store)}`,
      actions: manifestActions(store, imported !== null, page),
      empty: renderEmpty(nothingToInstall(store, page)),
      columns: [
        {
          label: 'Version',
          cell: ({ version }) => nameView(version, imported?.added.includes(version.id) === true),
        },
        {
          label: 'Build',
          cell: ({ version }) => html`<span class="version">${formatVersion(version)}</span>`,
        },
        {
          label: 'Kind',
          cell: ({ version: { type, isMandatoryUpdate } }) =>
            `${type === 'release' ? 'Release' : 'Patch'}${isMandatoryUpdate ? ', mandatory' : ''}`,
        },
        {
          label: 'Containers',
          cell: ({ version }) => formatNumber(version.containers.length + version.newContainers.length),
        },
        { label: 'Released', cell: ({ version }) => formatReleased(version) },
        {
          label: 'Status',
          cell: (one) =>
            statusView(
              isBlocked(one) ? ['Finish the failed job first.'] : one.reasons,
              canStart(one)
                ? one.path
                    .slice(0, -1)
                    .flatMap((id) => versions.find(({ version }) => version.id === id) ?? [])
                : [],
            ),
        },
        {
          label: 'Actions',
          cell: (one) =>
            canStart(one)
              ? html`<a class="button second" href="${wizardHref(page, one.version)}" aria-label="Upgrade to ${versionName(one.version)} …">Upgrade …</a>`
              : '',
        },
      ],
    })}`;
}

type AvailableVersion = ReturnType<typeof availableVersions>[number];

function nameView(version: Version, isNew: boolean): Html {
  const { url } = asJson(version);
  const notes = typeof url === 'string' && isHttpUrl(url) && url;
  return html`<strong>${versionName(version)}</strong> ${isNew && html`<span class="state busy">New</span>`}
  ${notes && html`<a class="hint" href="${notes}" rel="noreferrer">Notes</a>`}`;
}

function formatReleased(version: Version): string {
  const { released } = asJson(version);
  if (typeof released !== 'number') return '–';
  const at = new Date(released);
  return Number.isNaN(at.getTime()) ? String(released) : at.toISOString().slice(0, 10);
}

/** `through` are the versions before it on its path. */
function statusView(reasons: readonly string[], through: readonly AvailableVersion[]): Html {
  if (reasons.length === 0) return html`<span class="state good">Ready</span>`;
  if (through.length > 0)
    return html`<span class="state" title="One job also installs the versions that it needs."
      >Through ${formatList(through.map(({ version }) => formatVersion(version)))}</span
    >`;
  return html`<span class="state warn">Not now</span>
    <span class="hint" title="${reasons.join(' ')}">${reasons.join(' ')}</span>`;
}

/** To the first step of the wizard. */
export function wizardHref({ href }: PageContext<unknown>, { id }: Version, settings = {}): string {
  const query = new URLSearchParams({ versionManifest: JSON.stringify({ id }), ...settings });
  return `${href('system', 'upgrades', 'plan')}?${query.toString()}`;
}

/** The link leads to the plan of the repair. */
export function driftView(
  drift: Drift | undefined,
  installed: Version | undefined,
  page: PageContext<unknown>,
): Html | false {
  return (
    drift !== undefined &&
    html`${drift.text} ${drift.isKnown && installed && html`<a href="${wizardHref(page, installed)}">Repair …</a>`}`
  );
}

/** Why there is no version to install, and how to declare from which version others can be reached. */
export function nothingToInstall(store: ReadableStore, page: PageContext<unknown>): Html {
  const present = store.read(deployment);
  const manifest = currentManifest(store);
  const link = linkButton(page, page.href('system', 'upgrades', 'adopt'), 'Adopt a version …', 'plain');
  if (present && isListed(manifest, present)) return html`You have the newest version. ${link}`;
  const why = present ? nothingFollows(manifest, present) : 'The installed version is not known.';
  const starts = formatList(startingVersions(manifest));
  return html`${why} ${starts !== '' && `The manifest leads on from ${starts}.`} ${link}`;
}

function manifestActions(store: ReadableStore, isImported: boolean, page: PageContext<unknown>): Html {
  const upgrades = (operation: string) => page.href('system', 'upgrades', operation);
  const present = store.read(deployment);
  const template =
    present && `data:application/json,${encodeURIComponent(JSON.stringify(templateFor(present), null, 2))}`;
  return html`<a href="${page.here()}?f=pjson" download="manifest.json">Download the manifest</a>
    ${template !== null && html`<a href="${template}" download="manifest-template.json">Download a template</a>`}
    ${isImported && linkButton(page, upgrades('deleteImportedManifest'), `Use ${baseManifestName(store)}`, 'plain')}
    ${linkButton(page, upgrades('importManifest'), 'Import a manifest')}`;
}

/** A manifest with one patch of the installed version. It cannot be imported before its build is filled in. */
function templateFor(present: Deployment): readonly Partial<Version>[] {
  const { version, build, containers } = present.release;
  const patch: Partial<Version> & { name: string } = {
    id: 'pat_next',
    name: 'Next patch',
    type: 'patch',
    version,
    build: '<build>',
    releaseBuild: build,
    previousBuild: newestInstalled(present).build,
    isMandatoryUpdate: false,
    newLicensesRequired: false,
    containers: containers.slice(0, 1),
    newContainers: [],
    userForm: [],
  };
  return [patch];
}
