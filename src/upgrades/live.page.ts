// The newest job for people: its state, how far it has come, its messages, and what can be done about it. The script
// of the pages keeps it up to date while the job runs; without script a reload does.
import type { Shown } from '../rest/directory.ts';
import { actionButton } from '../rest/form-view.ts';
import { html, type Html } from '../rest/html.ts';
import { timeView } from '../rest/json-view.ts';
import type { Store } from '../store/store.ts';
import { endsOfCancelling, reasonNotToCancel, reasonNotToResume } from './job.ts';
import { type Job, type JobState, messages, plans } from './job-record.ts';
import type { Message } from './messages.ts';
import { progressOf } from './status.ts';

/** A release of thousands of workloads says more than a page can hold. */
const mostMessages = 200;

const states: Readonly<Record<JobState, { words: string; mark: string }>> = {
  in_progress: { words: 'In progress', mark: 'busy' },
  success: { words: 'Succeeded', mark: 'good' },
  failed: { words: 'Failed', mark: 'bad' },
  cancelled: { words: 'Cancelled', mark: 'warn' },
};

export function jobView(store: Store, job: Job, at: number, shown: Shown<unknown>): Html {
  const { words, mark } = states[job.state];
  const title = `${job.operation === 'upgrade' ? 'Upgrade' : 'Rollback'} from ${job.from} to ${job.to}`;
  const all = store.entries(messages, job.id);
  const isRunning = job.state === 'in_progress';
  const { elapsedMs, remainingMs } = progressOf(job, at);
  const follow = html`data-follow="${shown.here()}?${followQuery(job)}" data-after="${all.length}"
  data-elapsed="${elapsedMs}" data-remaining="${remainingMs}"`;
  return html`<section aria-labelledby="job" ${isRunning && follow}>
    <h2 id="job">${title} <span class="state ${mark}">${words}</span></h2>
    <p>
      Started by ${job.startedBy} at
      ${timeView(job.startedAt)}${job.endedAt !== null && html`, ended at ${timeView(job.endedAt)}`}.
    </p>
    ${job.reason !== null && html`<p class="${job.state === 'failed' ? 'problem' : ''}">${job.reason}</p>`}
    ${progressView(job, at)} ${isRunning && newsLine(shown)} ${actions(store, job, shown)}
    ${messagesView(job, all, shown)}
  </section>`;
}

function followQuery(job: Job): string {
  return new URLSearchParams({ f: 'json', wait: '30', jobId: job.id }).toString();
}

function progressView(job: Job, at: number): Html {
  const { done, total, percent, elapsedMs, remainingMs } = progressOf(job, at);
  const figure = (name: string, mark: string, value: string) =>
    html`<div>
      <dt>${name}</dt>
      <dd data-figure="${mark}">${value}</dd>
    </div> `;
  const remaining = remainingMs === null ? 'not known yet' : `about ${inWords(remainingMs)}`;
  return html`<progress max="${Math.max(total, 1)}" value="${total === 0 ? percent / 100 : done}" aria-labelledby="job">
      ${percent} %
    </progress>
    <dl class="figures">
      ${figure('Deployments', 'done', `${done} of ${total}`)} ${figure('Done', 'percent', `${percent} %`)}
      ${figure('Elapsed', 'elapsed', inWords(elapsedMs))}
      ${job.state === 'in_progress' && figure('Remaining', 'remaining', remaining)}
    </dl>`;
}

/** The one line that is read out; the script says here what it is doing. */
function newsLine(shown: Shown<unknown>): Html {
  return html`<p class="hint" role="status" data-news>
    <a href="${shown.here()}">Reload this page</a> to see how far it has come.
  </p>`;
}

function actions(store: Store, job: Job, { href, here, formToken }: Shown<unknown>): Html | false {
  const button = (operation: string, label: string, isGrave: boolean) =>
    actionButton({
      ...{ label, isGrave, formToken, next: here() },
      action: href('system', 'jobs', job.id, operation),
    });
  if (reasonNotToResume(store, job) === undefined) {
    return html`<p>
        Resuming goes on at the first step that is not done; the version is still ${job.from}.
      </p>
      ${button('resume', 'Resume', false)}`;
  }
  if (job.state !== 'in_progress') return false;
  if (job.cancelledBy !== null && !job.reverting) {
    return html`<p>${job.cancelledBy} has asked to cancel it: it ends after the step that is under way.</p>`;
  }
  const plan = store.get(plans, job.id);
  const why = plan && reasonNotToCancel(job, plan);
  if (!plan || why !== undefined) return html`<p class="hint">It cannot be cancelled: ${why}.</p>`;
  return html`<div class="hint" data-until="${endsOfCancelling(job).join(' ')}">
    ${button('cancel', 'Cancel this job', true)}
  </div>`;
}

function messagesView(job: Job, all: readonly Message[], { href }: Shown<unknown>): Html {
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
  return html`<li data-code="${code}">${timeView(when)} <code>${code}</code> <span>${message}</span></li> `;
}

/** The two largest units, such as "3 minutes 5 seconds". */
export function inWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const units = [
    { name: 'hour', count: Math.floor(seconds / 3600) },
    { name: 'minute', count: Math.floor(seconds / 60) % 60 },
    { name: 'second', count: seconds % 60 },
  ];
  const first = units.findIndex(({ count }) => count > 0);
  if (first < 0) return '0 seconds';
  return units
    .slice(first, first + 2)
    .filter(({ count }) => count > 0)
    .map(({ name, count }) => `${count} ${name}${count === 1 ? '' : 's'}`)
    .join(' ');
}
