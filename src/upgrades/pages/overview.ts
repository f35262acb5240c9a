// The overview of upgrades: a job that needs attention, the installed version with its rollback, one recommendation,
// and the last jobs.
import { renderAgo } from '../../console/time.ts';
import { renderFacts } from '../../console/table.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { isOpen, newestJob } from '../jobs/job-table.ts';
import { findJobToRepair, hasMixture, reasonNotToStart } from '../jobs/job-to-repair.ts';
import type { OperationsOptions } from '../operations.rest.ts';
import {
  currentManifest,
  deployment,
  installedVersions,
  newestInstalled,
  originOf,
  rollbackTargets,
} from '../versions/deployment.ts';
import { findPath, newestReachable, planHops } from '../versions/hops.ts';
import { type Version, formatVersion } from '../versions/manifest.ts';
import { lastJobs, repairText, rollbackLink } from './job-parts.ts';
import { jobSummary } from './jobs.ts';
import { driftView, nothingToInstall, versionName, wizardHref } from './versions.ts';
import { windowLine } from './windows.ts';

type PageOf = PageContext<unknown>;

export function upgradesPage(options: OperationsOptions): View<unknown> {
  const { store, jobService } = options;
  return async (page) => {
    const job = store.read(newestJob);
    // A failed job that is not the newest one blocks other upgrades too.
    const failed = findJobToRepair(store);
    const needsAttention = job !== null && (isOpen(job) || job.state === 'failed');
    return html`${needsAttention && (await jobSummary(options, job, page))}
      <div id="versions" data-live="5">
        ${failed && failed.id !== job?.id && html`<p class="notice">${repairText(failed, false)}</p>`}
        ${await installedView(options, page)}
        ${!needsAttention && recommendedView(store, page)} ${await lastJobs(jobService, page)}
      </div>`;
  };
}

async function installedView(
  { store, jobService, readDrift }: OperationsOptions,
  page: PageOf,
): Promise<Html> {
  const present = store.read(deployment);
  const newest = installedVersions(present).at(-1);
  const job = newest && (await jobService.findInstalling(newest.id));
  const installedAt = newest && job?.hops.installedAt[newest.id];
  const current = newest ? html`${nameAndBuild(newest)} ${mixedMark(store)}` : html`Not known`;
  const facts: [string, Html][] = [['Current version', current]];
  if (present && newest?.type === 'patch') facts.push(['A patch of', nameAndBuild(present.release)]);
  const origin = originOf(present);
  if (origin) facts.push(['Derived from', html`${origin.from}, ${renderAgo(origin.at, page.now)}`]);
  else if (job && installedAt) {
    const by = html`<a href="${page.href('system', 'jobs', job.id)}">installed by ${job.startedBy}</a>`;
    facts.push(['Since', html`${renderAgo(installedAt, page.now)}, ${by}`]);
  }
  const drift = driftView(await readDrift(), newest, page);
  return html`<section class="boxed" aria-labelledby="installed">
    <div>
      <h2 id="installed">Installed</h2>
      ${renderFacts(facts)} ${drift && html`<p class="notice">${drift}</p>`}
    </div>
    ${findRollbackTarget(store) && rollbackLink(page)}
  </section>`;
}

/** A mark on the version, if a failed job has left deployments with its images. */
export function mixedMark(store: ReadableStore): Html | false {
  const failed = findJobToRepair(store);
  const title = 'A failed job has left deployments with other images.';
  return (
    failed !== undefined && hasMixture(failed) && html`<span class="state warn" title="${title}">Mixed</span>`
  );
}

function nameAndBuild(version: Version): Html {
  return html`<strong>${versionName(version)}</strong> <span class="version">${formatVersion(version)}</span>`;
}

/** The path to the newest version, which one job with one set of settings installs. */
function recommendedView(store: ReadableStore, page: PageOf): Html | false {
  const newest = newestReachable(store);
  const present = store.read(deployment);
  if (!newest || !present) return html`<p>${nothingToInstall(store, page)}</p>`;
  const { version } = newest;
  const manifest = currentManifest(store);
  const path = findPath(manifest, present, version.id);
  const hasRelease = path.some(({ type }) => type === 'release');
  const { hops } = planHops(path, manifest, present, hasRelease);
  const last = hops.at(-1)?.to ?? formatVersion(version);
  return html`<section class="boxed recommended" aria-labelledby="newest">
    <div>
      <h2 id="newest">
        Upgrade to ${versionName(version)} ${hasRelease && html`<span class="state warn">Cannot be rolled back</span>`}
      </h2>
      <p>
        The newest version${hops.length > 1 && `, in one job of ${hops.length} upgrades with one license`}:
        ${[formatVersion(newestInstalled(present)), ...hops.map(({ to }) => to)].join(' → ')}
      </p>
      ${windowLine(store, page)}
      <p><a href="${page.here('available')}">All versions</a></p>
    </div>
    <a class="button" href="${wizardHref(page, version)}">Upgrade to ${last}</a>
  </section>`;
}

/** The version to which a rollback of the newest patch returns. Undefined if a rollback would be refused. */
export function findRollbackTarget(store: ReadableStore): Version | undefined {
  const blocked = reasonNotToStart(store, { operation: 'rollback', targetId: '' });
  return blocked === undefined ? rollbackTargets(store.read(deployment))[0] : undefined;
}
