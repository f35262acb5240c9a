// The page of the mode: whether the system is read-only, who has set it and when.
import { renderAgo } from '../../console/time.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Mode, ModeSetting } from '../mode.ts';

export function modeView(mode: Mode, setting: ModeSetting, now: number): Html {
  const { isReadOnly, reason, message } = mode;
  return html`<p>
      ${
        isReadOnly
          ? html`<span class="state warn">Read-only</span> Changes are refused.`
          : html`<span class="state good">Changes are accepted</span>`
      }
      ${reason === 'upgrade' ? 'The mode ends with the upgrade job.' : setByView(setting, now)}
    </p>
    ${isReadOnly && message !== '' && html`<p>Message for users: ${message}</p>`}`;
}

function setByView({ setBy, setAt, isReadOnly }: ModeSetting, now: number): Html | false {
  return (
    setBy !== null &&
    setAt !== null &&
    html`Turned ${isReadOnly ? 'on' : 'off'} by ${setBy} ${renderAgo(setAt, now)}.`
  );
}
