// The page of all users: their roles, when they last signed in, and what an administrator can do about each.
import { actionButton, confirmedAction } from '../../console/action.ts';
import { renderAgo } from '../../console/json.ts';
import { capitalise } from '../../console/labels.ts';
import { type Row, pageRange, renderFacts, renderPager, renderTable } from '../../console/table.ts';
import { type Role, roles } from '../../lib/caller.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';

export type ListedUser = {
  readonly username: string;
  readonly role: Role;
  readonly createdAt: number;
  readonly lastSignIn: number | null;
};

const roleMeanings: Readonly<Record<Role, string>> = {
  member: 'sees the services that are open to everyone or to signed-in users.',
  publisher: 'also creates, changes and deletes services and folders.',
  administrator: 'also manages webhooks, upgrades, users, uploads and the mode.',
};

export function explainRoles(): string {
  return roles.map((role) => `A user with the role ${role} ${roleMeanings[role]}`).join(' ');
}

export function usersView(users: readonly ListedUser[], page: PageContext<unknown>): Html {
  const range = pageRange(page.query);
  const shown = users.slice(range.start, range.start + range.num);
  const add = `${page.here('add')}?next=${encodeURIComponent(page.here())}`;
  return html`<p class="lead-actions"><a class="button" href="${add}">Add user</a></p>
    ${renderTable(
      'All users',
      ['User', 'Role', 'Last sign-in', 'Added', 'Actions'],
      shown.map((user) => rowOf(user, page)),
    )}
    ${renderPager('Users', range, users.length)}
    <section aria-labelledby="roles">
      <h2 id="roles">Roles</h2>
      ${renderFacts(roles.map((role) => [role, capitalise(roleMeanings[role])]))}
    </section>`;
}

function rowOf({ username, role, createdAt, lastSignIn }: ListedUser, page: PageContext<unknown>): Row {
  const isSelf = page.caller?.username === username;
  return [
    html`<strong>${username}</strong>${isSelf && html` <span class="hint">you</span>`}`,
    html`<span class="chip">${role}</span>`,
    lastSignIn === null ? html`<span class="none">never</span>` : renderAgo(lastSignIn, page.now),
    renderAgo(createdAt, page.now),
    actionsOf(username, role, page),
  ];
}

function actionsOf(username: string, role: Role, page: PageContext<unknown>): Html {
  const { here, formToken, isReadOnly } = page;
  const change = new URLSearchParams({ username, role, next: here() });
  const target = { formToken, next: here(), fields: { username } };
  return html`<div class="actions">
    <a href="${here('update')}?${change.toString()}" aria-label="Change ${username}">Change</a>
    ${formToken !== '' && actionButton({ ...target, action: here('endSessions'), label: 'End sessions' })}
    ${
      formToken !== '' &&
      !isReadOnly &&
      confirmedAction({
        ...target,
        action: here('remove'),
        label: 'Remove',
        subject: username,
        warning: `The user ${username} is removed, and all sessions of ${username} end at once.`,
      })
    }
  </div>`;
}
