// The inputs for the start of a job: when, and whether outside of the maintenance windows too.
import { problemView, renderTimeInput, zoneView } from '../../console/form.ts';
import { html, type Html } from '../../lib/html.ts';
import type { EnteredParts, Parts } from '../../rest/fields.ts';
import { type MaintenanceWindow, windowsAt } from '../schedule/windows.ts';
import { formatInZone, windowText } from './windows.ts';

type WindowsNow = { readonly windows: readonly MaintenanceWindow[]; readonly now: number };

const atTime = 'at';

/** A time that is entered counts, whatever is chosen: an upgrade must not start too early. */
export function whenParts(read: () => WindowsNow): Parts {
  return {
    render: (entered) => renderWhen(entered, read()),
    join: ({ when = '', at = '' }) => (at.trim() === '' ? when : at),
    explain: (text) => (text === atTime ? ['choose a time.'] : undefined),
  };
}

/** Outside of the windows, the next one is chosen at first. */
function nextOpening({ windows, now }: WindowsNow): string | undefined {
  const state = windowsAt(windows, now);
  return state.open || state.opensAt === null ? undefined : String(state.opensAt);
}

/** The script adds the time that is chosen. */
export function startButton(text: string | undefined, at: WindowsNow): Html {
  const isLater = (text ?? nextOpening(at) ?? '') !== '';
  return html`<button class="primary" data-start>${isLater ? 'Schedule' : 'Start'} the upgrade</button>`;
}

function renderWhen({ text, problems, isRequired }: EnteredParts, { windows, now }: WindowsNow): Html {
  const opensAt = nextOpening({ windows, now });
  const entered = text ?? opensAt ?? '';
  const isTime = entered !== '' && entered !== opensAt;
  const isWrong = problems.length > 0;
  const marks = html`id="startAt" name="startAt.at" ${isWrong && html`aria-invalid="true" aria-describedby="startAt-problem"`}`;
  return html`<div class="field when">
    <label for="when">When</label>
    <select id="when" name="startAt.when">
      ${!isRequired && html`<option value="">Now</option>`}
      ${opensAt !== undefined && html`<option value="${opensAt}" ${entered === opensAt && 'selected'}>In the next window, ${formatInZone(windows, Number(opensAt))}</option>`}
      <option value="${atTime}" ${isTime && 'selected'}>At …</option>
    </select>
    <label for="startAt">At${zoneView}</label>
    ${renderTimeInput(marks, isTime && entered !== atTime ? entered : '')} ${isWrong && problemView('startAt', problems)}
    ${windows.length > 0 && html`<p class="hint">${windowText(windows, now)}</p>`}
  </div> `;
}

/** Nothing without windows. */
export function ignoreWindowsParts(read: () => WindowsNow): Parts {
  return {
    render: ({ text }) =>
      read().windows.length === 0
        ? html``
        : html`<div class="field boxes">
            <div>
              <input type="checkbox" id="ignoreWindows" name="ignoreWindows.on" value="true" ${text === 'true' && 'checked'} />
              <label for="ignoreWindows">Start outside of the maintenance windows too</label>
            </div>
          </div> `,
    join: ({ on = '' }) => on,
  };
}
