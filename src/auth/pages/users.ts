// The page of all users: their roles, when they last signed in, and what an administrator can do about each.
import { formHref, linkButton, pageButton } from '../../console/action.ts';
import { renderListPage, renderSelect, selectEntries } from '../../console/list.ts';
import { compareNaturally, renderMenu, renderMissing } from '../../console/table.ts';
import { renderAgo } from '../../console/time.ts';
import { roles } from '../../lib/caller.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { User, UserSource } from '../user.ts';

type ListedUser = Pick<User, 'username' | 'role' | 'createdAt' | 'lastSignIn'> & {
  readonly source: UserSource;
};

const byName = (one: ListedUser, other: ListedUser) => compareNaturally(one.username, other.username);

export function usersView(users: readonly ListedUser[], page: PageContext<unknown>): Html {
  const list = selectEntries(users, page, {
    textOf: ({ username }) => username,
    filters: { role: ({ role }) => role },
    orders: {
      name: { compare: byName },
      role: {
        compare: (one, other) => roles.indexOf(one.role) - roles.indexOf(other.role) || byName(one, other),
      },
      lastSignIn: {
        compare: (one, other) => (one.lastSignIn ?? 0) - (other.lastSignIn ?? 0),
        isDescending: true,
      },
      added: { compare: (one, other) => one.createdAt - other.createdAt, isDescending: true },
    },
    usual: 50,
  });
  return renderListPage(page, list, {
    noun: 'user',
    label: 'All users',
    search: 'Search users',
    filters: [renderSelect('role', 'Role', 'All roles', roles, list.keep.role)],
    actions: linkButton(page, formHref(page, page.here('add')), 'Add user'),
    columns: [
      { label: 'User', sort: 'name', cell: (user) => nameView(user, page) },
      { label: 'Role', sort: 'role', cell: ({ role }) => html`<span class="chip">${role}</span>` },
      {
        label: 'Last sign-in',
        sort: 'lastSignIn',
        cell: ({ lastSignIn }) =>
          lastSignIn === null ? renderMissing('never') : renderAgo(lastSignIn, page.now),
      },
      { label: 'Added', sort: 'added', cell: ({ createdAt }) => renderAgo(createdAt, page.now) },
      { label: 'Actions', cell: (user) => menuOf(user, page) },
    ],
  });
}

function nameView({ username, source }: ListedUser, { caller }: PageContext<unknown>): Html {
  return html`<strong>${username}</strong>${caller?.username === username && html` <span class="hint">you</span>`}
    ${source === 'oidc' && html`<span class="chip">identity provider</span>`}`;
}

function menuOf({ username, role }: ListedUser, page: PageContext<unknown>): Html | '' {
  const { here } = page;
  const fields = { username };
  return renderMenu(`user-${username}`, username, [
    linkButton(page, formHref(page, here('update'), { username, role }), 'Change', 'plain'),
    // The reader would be signed out at once, so the form asks first.
    page.caller?.username === username
      ? html`<a href="${here('endSessions')}?${new URLSearchParams(fields).toString()}">End my sessions …</a>`
      : pageButton(page, {
          action: here('endSessions'),
          label: 'End sessions',
          fields,
          worksWhileReadOnly: true,
        }),
    linkButton(page, formHref(page, here('remove'), fields), 'Remove …', 'destructive'),
  ]);
}
