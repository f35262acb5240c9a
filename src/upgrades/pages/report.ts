// The report of an ended job, to print or to file: who, when, versions, phases with durations, components, failures.
import { renderTime } from '../../console/time.ts';
import { type Row, renderFacts, renderTable } from '../../console/table.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Job } from '../jobs/job-table.ts';
import type { Message } from '../jobs/messages.ts';
import type { Plan } from '../planning/plan.ts';
import { currentManifest, deployment, findVersion } from '../versions/deployment.ts';
import { formatVersion } from '../versions/manifest.ts';
import { stateView } from './job-parts.ts';
import { type JobViewOptions, durationOf, interventions } from './jobs.ts';
import { phaseSummaries, tilesOf } from './picture.ts';
import { versionName } from './versions.ts';

export async function reportView(
  { store, jobService }: JobViewOptions,
  job: Job,
  page: PageContext<unknown>,
): Promise<Html> {
  const { messages } = await jobService.messages(job);
  // Only a failed job still has its plan.
  const plan = job.state === 'failed' ? await store.jobs.plan(job.id) : undefined;
  const events = messages.filter(({ code }) => interventions.includes(code));
  return html`<section aria-labelledby="job">
    <h2 id="job">Report ${stateView(job)}</h2>
    ${renderFacts(factsOf(job, page.now))} ${versionsView(store, job)} ${phaseTable(job)} ${componentTable(job, plan)}
    ${eventsView(events)}
    <p class="hint">
      Job ${job.id}, ${formatCount(job.messageCount, 'message')}.
      <a href="${page.href('system', 'jobs', job.id)}">Back to the job</a>
    </p>
  </section>`;
}

function factsOf(job: Job, now: number): [string, Html | string][] {
  const { startedBy, startedAt, endedAt, runStartedAt, reason, from, to, workloads, workloadsDone } = job;
  const facts: [string, Html | string][] = [
    ['Started by', startedBy],
    ['Started', startedAt === null ? 'never' : renderTime(startedAt)],
    ['Ended', endedAt === null ? 'still running' : renderTime(endedAt)],
    ['Duration', formatDuration(durationOf(job, now))],
    ['Version before', from],
    ['Version after', job.state === 'success' ? to : `${from} (target ${to})`],
    ['Deployments', `${workloadsDone} of ${workloads}`],
  ];
  if (startedAt !== null && runStartedAt !== startedAt)
    facts.push(['Last resumed', renderTime(runStartedAt)]);
  facts.push(['Steps', `${job.progress.done} of ${job.progress.total}`]);
  if (reason !== null) facts.push(['Reason', reason]);
  return facts;
}

function versionsView(store: JobViewOptions['store'], { installs, operation }: Job): Html | false {
  const versions = installs.map(
    (id) => findVersion(currentManifest(store), store.read(deployment), id) ?? id,
  );
  return (
    operation === 'upgrade' &&
    html`<h3>Versions</h3>
      <ol>
        ${versions.map(
          (version) =>
            html`<li>
              ${typeof version === 'string' ? version : `${versionName(version)} (${formatVersion(version)})`}
            </li> `,
        )}
      </ol>`
  );
}

function phaseTable(job: Job): Html | false {
  const rows = phaseSummaries(job).map(({ label, state, done, steps, ms }): Row => [
    label,
    state,
    `${done} of ${steps}`,
    ms === undefined ? '–' : formatDuration(ms),
  ]);
  return (
    rows.length > 0 &&
    html`<h3>Phases</h3>
      ${renderTable('Phases', ['Phase', 'State', 'Steps', 'Duration'], rows)}`
  );
}

function componentTable(job: Job, plan: Plan | undefined): Html | false {
  const rows = tilesOf(job, plan).map(({ name, total, done }): Row => [name, `${done} of ${total}`]);
  return (
    rows.length > 0 &&
    html`<h3>Components</h3>
      ${renderTable('Components', ['Component', 'Updated deployments'], rows)}`
  );
}

function eventsView(events: readonly Message[]): Html {
  return html`<h3>Failures and interventions</h3>
    ${
      events.length === 0
        ? html`<p>None.</p>`
        : html`<ol class="plain-log">
            ${events.map(
              ({ code, message, when }) =>
                html`<li>${renderTime(when)} <code>${code}</code> <span>${message}</span></li> `,
            )}
          </ol>`
    }`;
}
