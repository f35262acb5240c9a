// The page of the own account: its sessions, and the password.
import { actionButton } from '../../console/action.ts';
import { renderAgo, renderTime } from '../../console/json.ts';
import { type Row, renderFacts, renderTable } from '../../console/table.ts';
import type { Role } from '../../lib/caller.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';

export type Account = {
  readonly username: string;
  readonly role: Role;
  readonly createdAt: number;
  readonly lastSignIn: number | null;
  readonly sessions: readonly OwnSession[];
};

type OwnSession = {
  readonly id: string;
  readonly createdAt: number;
  readonly expires: number;
  readonly address: string | null;
  readonly current: boolean;
};

export function accountView(account: Account, page: PageContext<unknown>): Html {
  const { username, role, createdAt, sessions } = account;
  const change = `${page.here('changePassword')}?next=${encodeURIComponent(page.here())}`;
  return html`${renderFacts([
    ['User name', username],
    ['Role', html`<span class="chip">${role}</span>`],
    ['Account created', renderAgo(createdAt, page.now)],
  ])}
    <p class="lead-actions"><a class="button" href="${change}">Change password</a></p>
    <section aria-labelledby="sessions">
      <h2 id="sessions">Your sessions</h2>
      ${renderTable(
        'Sessions',
        ['Session', 'From', 'Ends', 'Actions'],
        sessions.map((session) => rowOf(session, page)),
      )}
    </section>`;
}

function rowOf({ id, createdAt, expires, address, current }: OwnSession, page: PageContext<unknown>): Row {
  const { here, formToken } = page;
  const end = actionButton({
    action: here('endSession'),
    label: 'End session',
    formToken,
    next: here(),
    fields: { id },
    isDestructive: true,
  });
  return [
    html`Signed in ${renderAgo(createdAt, page.now)}`,
    address ?? html`<span class="none">unknown</span>`,
    renderTime(expires),
    current ? html`<span class="chip">this session</span>` : formToken !== '' ? end : html`–`,
  ];
}
