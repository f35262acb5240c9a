// Small parts of pages about jobs: title, state, figures.
import { formHref, linkButton, pageButton } from '../../console/action.ts';
import { renderTime } from '../../console/time.ts';
import { formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Job, JobState } from '../jobs/job-table.ts';

const states: Readonly<Record<JobState, { label: string; className: string }>> = {
  scheduled: { label: 'Scheduled', className: 'busy' },
  in_progress: { label: 'In progress', className: 'busy' },
  success: { label: 'Succeeded', className: 'good' },
  failed: { label: 'Failed', className: 'bad' },
  cancelled: { label: 'Cancelled', className: 'warn' },
};

/** The button says in which direction the job continues. */
export function resumeLabel({ reverting }: Job): string {
  return reverting ? 'Resume putting back' : 'Resume';
}

export function jobTitle({ operation, from, to }: Job): string {
  return `${operation === 'upgrade' ? 'Upgrade' : 'Rollback'} from ${from} to ${to}`;
}

export function stateLabel({ state }: Job): string {
  return states[state].label.toLowerCase();
}

export function stateView({ state }: Job): Html {
  const { label, className } = states[state];
  return html`<span class="state ${className}">${label}</span>`;
}

export type Figure = { readonly label: string; readonly value: string };

export function figuresView(figures: readonly Figure[]): Html {
  return html`<dl class="figures">
    ${figures.map(
      ({ label, value }) =>
        html`<div>
          <dt>${label}</dt>
          <dd>${value}</dd>
        </div> `,
    )}
  </dl>`;
}

/** How to continue after a failed job, which blocks other upgrades. */
export function repairText({ to, reverting }: Job, isNewest: boolean): string {
  if (reverting)
    return `The job to ${to} has not put back all of its workloads. Resume it to put the others back.`;
  const remedy = isNewest ? 'Resume it, or upgrade to that version again.' : 'Upgrade to that version again.';
  return `The job to ${to} has failed. ${remedy}`;
}

/** A countdown, as of the last read of the page. */
export function startView(startAt: number, now: number): Html {
  const left = startAt - now;
  return left > 0
    ? html`Starts in <strong>${formatDuration(left)}</strong>, at ${renderTime(startAt)}`
    : html`Due since ${renderTime(startAt)}. It starts as soon as a maintenance window is open.`;
}

/** To the form of a rollback, which then leads to the page of the new job. */
export function rollbackLink(page: PageContext<unknown>, label: string, to?: { readonly id: string }): Html {
  const form = formHref(page, page.href('system', 'upgrades', 'rollback'), {
    ...(to && { versionManifest: JSON.stringify({ id: to.id }) }),
    next: page.href('system', 'jobs', '{jobId}'),
  });
  return linkButton(page, form, label, 'destructive');
}

/** Cancel and Move. */
export function scheduleActions(job: Job, page: PageContext<unknown>): Html | false {
  if (job.state !== 'scheduled' || page.formToken === '') return false;
  const at = (...operation: string[]) => page.href('system', 'jobs', job.id, ...operation);
  const cancel = { label: 'Cancel', action: at('cancel'), next: at(), isDestructive: true };
  return html`${pageButton(page, { ...cancel, worksWhileReadOnly: true })}
  ${linkButton(page, at('reschedule'), 'Move …', 'plain')}`;
}
