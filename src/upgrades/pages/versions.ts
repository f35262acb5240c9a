// The versions on the upgrades page: installed, available, and those that a rollback can go back to.
import { actionButton } from '../../console/action.ts';
import { renderAgo, renderTime } from '../../console/json.ts';
import { type Row, renderFacts, renderTable } from '../../console/table.ts';
import { formatCount, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { asJson } from '../../lib/json.ts';
import { isHttpUrl, truncate } from '../../lib/text.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { JobService } from '../jobs/job-service.ts';
import { type Job, newestJob, timeOfInstalling } from '../jobs/job-table.ts';
import { findJobToRepair, reasonNotToStart, repairs } from '../jobs/job-to-repair.ts';
import { countMovesOfRollbacks } from '../planning/workloads.ts';
import {
  currentManifest,
  deployment,
  findVersion,
  importedManifest,
  newestInstalled,
  rollbackTargets,
} from '../versions/deployment.ts';
import { availableVersions, newestReachable } from '../versions/hops.ts';
import { type Version, formatVersion } from '../versions/manifest.ts';
import { jobTitle, signInHint } from './job-parts.ts';

/** A page repeats the name for each setting. */
const maxName = 200;

export function versionName(version: Version): string {
  const { name } = asJson(version);
  return typeof name === 'string' && name !== ''
    ? truncate(name, maxName)
    : `${version.type} ${version.version}`;
}

export async function installedView(
  { store, jobService }: { store: ReadableStore; jobService: JobService },
  { now }: PageContext<unknown>,
): Promise<Html> {
  const present = store.read(deployment);
  const newest = newestInstalled(present);
  const job = await jobService.findInstalling(newest.id);
  const installedAt = job && timeOfInstalling(job, newest.id);
  const current = html`<strong>${versionName(newest)}</strong>
    <span class="version">${formatVersion(newest)}</span>`;
  const release = html`${versionName(present.release)}
    <span class="version">${formatVersion(present.release)}</span>`;
  const facts: [string, Html][] = [['Current version', current]];
  if (newest.type === 'patch') facts.push(['A patch of', release]);
  if (installedAt) facts.push(['Since', renderAgo(installedAt, now)]);
  return html`<section aria-labelledby="installed">
    <h2 id="installed">Installed</h2>
    ${renderFacts(facts)}
  </section>`;
}

/** The installed version, and the job that installed it. */
export async function currentVersionView(
  options: { store: ReadableStore; jobService: JobService },
  page: PageContext<unknown>,
): Promise<Html> {
  const newest = newestInstalled(options.store.read(deployment));
  const job = await options.jobService.findInstalling(newest.id);
  return html`${await installedView(options, page)}
    <p>
      ${
        job
          ? html`${job.startedBy} installed it with the job
              <a href="${page.href('system', 'jobs', job.id)}">${jobTitle(job)}</a>, which shows the messages.`
          : 'No job of this server has installed it.'
      }
    </p>`;
}

/** The path to the newest version, which one job with one set of settings installs. */
export function recommendedView(store: ReadableStore, page: PageContext<unknown>): Html | false {
  const newest = newestReachable(store);
  if (!newest) return false;
  const { version, path } = newest;
  const manifest = currentManifest(store);
  const present = store.read(deployment);
  const names = path.map((id) => {
    const found = findVersion(manifest, present, id);
    return found ? formatVersion(found) : id;
  });
  return html`<section class="recommended" aria-labelledby="newest">
    <div>
      <h2 id="newest">Upgrade to ${versionName(version)}</h2>
      <p>
        The newest version${path.length > 1 && ', with one license and one job'}:
        ${[formatVersion(newestInstalled(present)), ...names].join(' → ')}
      </p>
    </div>
    <a class="button" href="${page.here()}?version=${encodeURIComponent(version.id)}">Upgrade to ${formatVersion(version)}</a>
  </section>`;
}

export function availableView(store: ReadableStore, page: PageContext<unknown>): Html {
  const chosen = page.query.get('version');
  const versions = availableVersions(store);
  const failed = findJobToRepair(store);
  const blocked = reasonNotToStart(store, { operation: 'upgrade', targetId: '' });
  return html`<section aria-labelledby="available">
    <h2 id="available">Available</h2>
    ${failed ? repairNotice(failed, store.read(newestJob)?.id === failed.id) : blocked !== undefined && html`<p class="notice">${blocked}</p>`}
    ${versions.length === 0 && html`<p>You have the newest version.</p>`}
    <ul class="versions">
      ${versions.map(({ version, reasons, path }) => {
        const isBlocked = failed && !repairs(failed, version.id);
        const all = isBlocked ? ['Finish the failed job first.'] : reasons;
        const choose =
          path.length > 0 &&
          !isBlocked &&
          html`<a
            class="button second"
            href="${page.here()}?version=${encodeURIComponent(version.id)}"
            aria-label="Choose ${versionName(version)}"
            >Choose</a
          >`;
        return html`<li ${version.id === chosen && html`aria-current="true"`}>
          <div>${versionView(version)}</div>
          <div>${installableView(all, isBlocked ? 0 : path.length)}</div>
          <div>${choose}</div>
        </li> `;
      })}
    </ul>
    ${manifestLine(store, page)}
  </section>`;
}

function repairNotice({ to, reverting }: Job, isNewest: boolean): Html {
  if (reverting)
    return html`<p class="notice">
      The job to ${to} has not put back all of its workloads. Resume it to put the others back.
    </p>`;
  const remedy = isNewest ? 'Resume it, or upgrade to that version again.' : 'Upgrade to that version again.';
  return html`<p class="notice">The job to ${to} has failed. ${remedy}</p>`;
}

function versionView(version: Version): Html {
  const { released, url } = asJson(version);
  const containers = version.containers.length + version.newContainers.length;
  const facts = [
    version.type === 'release' ? 'Release' : 'Patch',
    version.isMandatoryUpdate && 'mandatory',
    formatCount(containers, 'container'),
    typeof released === 'number' && `released ${formatDate(released)}`,
  ];
  return html`<h3>${versionName(version)} <span class="version">${formatVersion(version)}</span></h3>
    <p class="hint">
      ${facts.filter(Boolean).join(', ')}${
        typeof url === 'string' && isHttpUrl(url) && html`, <a href="${url}" rel="noreferrer">notes</a>`
      }
    </p>`;
}

let dates: Intl.DateTimeFormat | undefined;

function formatDate(at: number): string {
  try {
    return (dates ??= new Intl.DateTimeFormat('en-CA', { timeZone: 'UTC' })).format(at);
  } catch {
    return String(at);
  }
}

function installableView(reasons: readonly string[], hops: number): Html {
  if (reasons.length === 0) return html`<span class="state good">Installable</span>`;
  if (hops > 1)
    return html`<span class="state">In ${hops} steps</span>
      <p class="hint">One job also installs the versions that it needs.</p>`;
  return html`<span class="state warn">Not now</span>
    ${reasons.map((reason) => html`<p class="hint">${reason}</p> `)}`;
}

function manifestLine(store: ReadableStore, { here }: PageContext<unknown>): Html {
  const imported = store.read(importedManifest);
  const deleteLink = html`, or
    <a href="${here('deleteImportedManifest')}">go back to the built-in one</a>`;
  return html`<p>
    ${
      imported
        ? html`The versions come from the manifest imported at ${renderTime(imported.importedAt)}.`
        : 'The versions come from the built-in manifest.'
    }
    <a href="${here('importManifest')}">Import ${imported ? 'another' : 'a'} manifest</a>${imported && deleteLink}.
  </p>`;
}

export function manifestView(store: ReadableStore, page: PageContext<unknown>): Html {
  const imported = store.read(importedManifest);
  const facts: [string, Html | string][] = [
    ['Source', imported ? 'Imported by an administrator' : 'Built in'],
    ...(imported ? [['Imported', renderAgo(imported.importedAt, page.now)] as [string, Html]] : []),
    ['Versions', formatNumber(currentManifest(store).length)],
  ];
  return html`${renderFacts(facts)}
    <p>
      <a class="button" href="${page.here('importManifest')}">Import a manifest</a>
      ${imported && html`<a class="button second" href="${page.here('deleteImportedManifest')}">Go back to the built-in one</a>`}
    </p>
    <p><a href="${page.here('available')}">Show the available versions</a></p>`;
}

export function rollbackView(
  store: ReadableStore,
  mayStart: boolean,
  page: PageContext<unknown>,
): Html | false {
  const present = store.read(deployment);
  const targets = rollbackTargets(present);
  const blocked = reasonNotToStart(store, { operation: 'rollback', targetId: '' });
  if (targets.length === 0 || blocked !== undefined) return false;
  const moves = countMovesOfRollbacks(present);
  // The newest target comes first, so the first one removes one patch.
  const target = (version: Version, index: number) => {
    const label = `Roll back to ${formatVersion(version)}`;
    const button = actionButton({
      action: page.here('rollback'),
      formToken: page.formToken,
      next: page.here(),
      isDestructive: true,
      label,
      fields: { versionManifest: JSON.stringify({ id: version.id }) },
    });
    const isChosen = page.query.get('rollback') === version.id;
    // Two clicks, because a rollback cannot be cancelled.
    const confirmation = html`<details class="destructive" ${isChosen && 'open'}>
      <summary>${label} …</summary>
      <p>The rollback starts at once and cannot be cancelled. The system is read-only until it has ended.</p>
      ${button}
    </details>`;
    return html`<li>
      <div>
        <h3>Back to ${versionName(version)} <span class="version">${formatVersion(version)}</span></h3>
        <p class="hint">
          Removes ${formatRemoved(present.patches, targets.length - index - 1)}. Puts back ${formatCount(moves.get(version.id) ?? 0, 'container')}.
        </p>
      </div>
      <div>${mayStart && (page.formToken === '' ? signInHint(page, 'roll back') : confirmation)}</div>
    </li> `;
  };
  return html`<section aria-labelledby="rollback">
    <h2 id="rollback">Roll back</h2>
    <p>Patches can be rolled back; releases cannot.</p>
    <ul class="versions back">
      ${targets.map(target)}
    </ul>
  </section>`;
}

/** A deployment may have thousands of patches. */
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

export function versionTable(label: string, versions: readonly Version[]): Html {
  if (versions.length === 0) return html`<p class="none">None.</p>`;
  const rows = versions.map((version): Row => [
    versionName(version),
    formatVersion(version),
    version.type,
    String(version.containers.length + version.newContainers.length),
    html`<code>${version.id}</code>`,
  ]);
  return renderTable(label, ['Version', 'Build', 'Kind', 'Containers', 'Id'], rows);
}
