// The page of the mode: whether the system is read-only, who has set it and when, and a button to change it.
import { hiddenFields, pageButton } from '../../console/action.ts';
import { renderAgo } from '../../console/time.ts';
import { mayCall } from '../../lib/caller.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Mode, ModeSetting } from '../mode.ts';

export function modeView(mode: Mode, setting: ModeSetting, page: PageContext<unknown>): Html {
  const { isReadOnly, reason, message } = mode;
  return html`<p>
      ${
        isReadOnly
          ? html`<span class="state warn">Read-only</span> Changes are refused.`
          : html`<span class="state good">Changes are accepted</span>`
      }
      ${reason === 'upgrade' ? 'The mode ends with the upgrade job.' : setByView(setting, page)}
    </p>
    ${isReadOnly && message !== '' && html`<p>Message for users: ${message}</p>`}
    ${mayCall(page.caller, 'administrator') && page.formToken !== '' && changeView(mode, page)}`;
}

function setByView({ setBy, setAt, isReadOnly }: ModeSetting, { now }: PageContext<unknown>): Html | false {
  return (
    setBy !== null &&
    setAt !== null &&
    html`Turned ${isReadOnly ? 'on' : 'off'} by ${setBy} ${renderAgo(setAt, now)}.`
  );
}

function changeView({ isReadOnly, reason }: Mode, page: PageContext<unknown>): Html | false {
  const { here, formToken } = page;
  if (reason === 'upgrade') return false;
  if (isReadOnly) {
    return pageButton(page, {
      action: here('update'),
      label: 'Turn read-only mode off',
      fields: { isReadOnly: 'false' },
      isPrimary: true,
      worksWhileReadOnly: true,
    });
  }
  return html`<form method="post" action="${here('update')}">
    ${hiddenFields({ f: 'html', token: formToken, next: here(), isReadOnly: 'true' })}
    <div class="field">
      <label for="message">Message for users</label>
      <input id="message" name="message" maxlength="1000" aria-describedby="message-hint" />
      <p class="hint" id="message-hint">Every page shows it while the system is read-only.</p>
    </div>
    <p><button>Turn read-only mode on</button></p>
  </form>`;
}
