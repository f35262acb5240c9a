// Jobs for people: a list of them, and one with its state, how far it has come, its messages, and what can be done about
// it. The script of the pages keeps it up to date while the job runs; without script a reload does.
import type { PageContext } from '../../rest/resource.ts';
import { actionButton } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import { type Row, renderPager, pageRange, renderTable } from '../../rest/html/table.ts';
import type { Store } from '../../store/store.ts';
import { formatDuration } from '../../lib/format.ts';
import { endsOfCancelling, reasonNotToCancel, reasonNotToResume } from '../job.ts';
import { type Job, type JobState, messages, plans } from '../job-table.ts';
import type { Message } from '../messages.ts';
import { jobProgress } from '../job-status.ts';

/** A release of thousands of workloads says more than a page can hold. */
const mostMessages = 200;

const states: Readonly<Record<JobState, { words: string; mark: string }>> = {
  in_progress: { words: 'In progress', mark: 'busy' },
  success: { words: 'Succeeded', mark: 'good' },
  failed: { words: 'Failed', mark: 'bad' },
  cancelled: { words: 'Cancelled', mark: 'warn' },
};

function titleOf({ operation, from, to }: Job): string {
  return `${operation === 'upgrade' ? 'Upgrade' : 'Rollback'} from ${from} to ${to}`;
}

function stateView({ state }: Job): Html {
  const { words, mark } = states[state];
  return html`<span class="state ${mark}">${words}</span>`;
}

/** Each leads to its own page beneath this one. */
export function jobListView(listed: readonly Job[], page: PageContext<unknown>): Html {
  if (listed.length === 0) return html`<p>There has been no job yet.</p>`;
  const part = pageRange(page.query);
  const rows = listed
    .slice(part.start, part.start + part.num)
    .map((job): Row => [
      html`<a href="${page.here(job.id)}">${titleOf(job)}</a>`,
      stateView(job),
      renderTime(job.startedAt),
      job.endedAt === null ? html`<span class="none">–</span>` : renderTime(job.endedAt),
      html`${job.startedBy}`,
    ]);
  return html`${renderTable('Jobs', ['Job', 'State', 'Started', 'Ended', 'By'], rows)}
  ${renderPager('Jobs', part, listed.length)}`;
}

export function jobView(store: Store, job: Job, at: number, page: PageContext<unknown>): Html {
  const all = store.entries(messages, job.id);
  const isRunning = job.state === 'in_progress';
  const { elapsedMs, remainingMs } = jobProgress(job, at);
  const follow = html`data-follow="${page.href('system', 'upgrades')}?${followQuery(job)}" data-after="${all.length}"
  data-elapsed="${elapsedMs}" data-remaining="${remainingMs}"`;
  // A page that was opened by a token has nothing to ask again with.
  const isFollowed = isRunning && page.formToken !== '';
  return html`<section aria-labelledby="job" ${isFollowed && follow}>
    <h2 id="job">${titleOf(job)} ${stateView(job)}</h2>
    <p>
      Started by ${job.startedBy} at
      ${renderTime(job.startedAt)}${job.endedAt !== null && html`, ended at ${renderTime(job.endedAt)}`}.
    </p>
    ${job.reason !== null && html`<p class="${job.state === 'failed' ? 'problem' : ''}">${job.reason}</p>`}
    ${progressView(job, at)} ${isRunning && newsLine(page)} ${actions(store, job, page)}
    ${messagesView(job, all, page)}
  </section>`;
}

function followQuery(job: Job): string {
  return new URLSearchParams({ f: 'json', wait: '30', jobId: job.id }).toString();
}

function progressView(job: Job, at: number): Html {
  const { done, total, percent, elapsedMs, remainingMs } = jobProgress(job, at);
  const figure = (name: string, mark: string, value: string) =>
    html`<div>
      <dt>${name}</dt>
      <dd data-figure="${mark}">${value}</dd>
    </div> `;
  return html`<progress max="${Math.max(total, 1)}" value="${total === 0 ? percent / 100 : done}" aria-labelledby="job">
      ${percent} %
    </progress>
    <dl class="figures">
      ${figure('Deployments', 'done', `${done} of ${total}`)} ${figure('Done', 'percent', `${percent} %`)}
      ${figure('Elapsed', 'elapsed', formatDuration(elapsedMs))}
      ${job.state === 'in_progress' && figure('Remaining', 'remaining', formatRemaining(remainingMs))}
    </dl>`;
}

/** An estimate; the script says the same. */
function formatRemaining(ms: number | null): string {
  if (ms === null) return 'not known yet';
  return ms < 10_000 ? 'a few seconds' : `about ${formatDuration(ms)}`;
}

/** The one line that is read out; the script says here what it is doing. */
function newsLine(page: PageContext<unknown>): Html {
  return html`<p class="hint" role="status" data-news>
    <a href="${page.here()}">Reload this page</a> to see how far it has come.
  </p>`;
}

/** In place of a button that would not work. */
export function signInFirst({ here }: PageContext<unknown>, purpose: string): Html {
  return html`<p class="hint"><a href="${here()}">Sign in</a> with this browser to ${purpose}.</p>`;
}

function actions(store: Store, job: Job, page: PageContext<unknown>): Html | false {
  const { href, here, formToken } = page;
  const button = (operation: 'cancel' | 'resume', label: string) =>
    formToken === ''
      ? signInFirst(page, `${operation} it`)
      : actionButton({
          label,
          formToken,
          next: here(),
          isDestructive: operation === 'cancel',
          action: href('system', 'jobs', job.id, operation),
        });
  if (reasonNotToResume(store, job) === undefined) {
    return html`<p>
        Resuming goes on at the first step that is not done; the version is still ${job.from}.
      </p>
      ${button('resume', 'Resume')}`;
  }
  if (job.state !== 'in_progress') return false;
  if (job.cancelledBy !== null && !job.reverting) {
    return html`<p>${job.cancelledBy} has asked to cancel it: it ends after the step that is under way.</p>`;
  }
  const plan = store.get(plans, job.id);
  const why = plan ? reasonNotToCancel(job, plan) : 'its plan is gone';
  if (why !== undefined) return html`<p class="hint">It cannot be cancelled: ${why}.</p>`;
  return html`<div class="hint" data-until="${endsOfCancelling(job).join(' ')}">
    ${button('cancel', 'Cancel this job')}
  </div>`;
}

function messagesView(job: Job, all: readonly Message[], { href }: PageContext<unknown>): Html {
  return html`<h3>Messages</h3>
    <p class="hint">
      <span data-figure="messages">${all.length}</span> in all; at most the newest ${mostMessages} are shown here,
      <a href="${href('system', 'jobs', job.id)}?f=json">all of them are in the JSON</a>.
    </p>
    <div class="messages" tabindex="0" role="region" aria-label="Messages, the newest last">
      <ol data-messages="${mostMessages}">
        ${all.slice(-mostMessages).map(messageView)}
      </ol>
    </div>`;
}

function messageView({ code, message, when }: Message): Html {
  return html`<li data-code="${code}">${renderTime(when)} <code>${code}</code> <span>${message}</span></li> `;
}
