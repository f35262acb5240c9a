// The page of all users: their roles, when they last signed in, and what an administrator can do about each.
import { actionButton, confirmedAction, linkButton } from '../../console/action.ts';
import { renderAgo } from '../../console/time.ts';
import { capitalise } from '../../console/labels.ts';
import {
  type Row,
  type Sorting,
  compareNaturally,
  listAddress,
  listParameters,
  pageRange,
  renderEmpty,
  renderFacts,
  renderList,
  renderMenu,
  renderPager,
  renderSelect,
  renderToolbar,
  sortBy,
  sortableColumn,
  sortingOf,
} from '../../console/table.ts';
import { type Role, roles } from '../../lib/caller.ts';
import { formatCount } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';

export type ListedUser = {
  readonly username: string;
  readonly role: Role;
  readonly source: 'local' | 'oidc';
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

const orders = {
  name: 'ascending',
  role: 'ascending',
  lastSignIn: 'descending',
  added: 'descending',
} as const;

export function usersView(users: readonly ListedUser[], page: PageContext<unknown>): Html {
  const keep = listParameters(page.query, ['q', 'role', 'sort', 'order']);
  const { q: search = '', role: _role, ...sortedBy } = keep;
  const sorting = sortingOf(page.query, orders);
  const column = (label: string, key: keyof typeof orders) => sortableColumn(label, key, sorting, keep);
  const listed = findUsers(users, search, keep.role, sorting);
  const range = pageRange(page.query, { usual: 50 });
  const shown = listed.slice(range.start, range.start + range.num);
  const add = `${page.here('add')}?next=${encodeURIComponent(page.here())}`;
  const back = listAddress(page, ['role']);
  const roleOptions = [
    { value: '', label: 'All roles' },
    ...roles.map((role) => ({ value: role, label: role })),
  ];
  return html`${renderToolbar({
    action: page.here(),
    search: { label: 'Search users', value: search },
    filters: [renderSelect('role', 'Role', roleOptions, keep.role)],
    keep: sortedBy,
    count: formatCount(listed.length, 'user'),
    actions: linkButton(page, add, 'Add user'),
  })}
    ${
      listed.length === 0
        ? renderEmpty('No user matches.', { href: page.here(), label: 'Remove the filters' })
        : renderList(
            'All users',
            [
              column('User', 'name'),
              column('Role', 'role'),
              column('Last sign-in', 'lastSignIn'),
              column('Added', 'added'),
              'Actions',
            ],
            shown.map((user, index) => rowOf(user, page, { next: back, menu: `user-${index}` })),
          )
    }
    ${renderPager('Users', range, listed.length, { keep })}
    <section aria-labelledby="roles">
      <h2 id="roles">Roles</h2>
      ${renderFacts(roles.map((role) => [role, capitalise(roleMeanings[role])]))}
    </section>`;
}

function findUsers(
  users: readonly ListedUser[],
  search: string,
  role: string | undefined,
  sorting: Sorting<keyof typeof orders>,
): ListedUser[] {
  const words = search.trim().toLowerCase();
  const found = users.filter(
    (user) => user.username.toLowerCase().includes(words) && (role === undefined || user.role === role),
  );
  const byName = (one: ListedUser, other: ListedUser) => compareNaturally(one.username, other.username);
  return sortBy(found, sorting, {
    name: byName,
    role: (one, other) => roles.indexOf(one.role) - roles.indexOf(other.role) || byName(one, other),
    lastSignIn: (one, other) => (one.lastSignIn ?? 0) - (other.lastSignIn ?? 0),
    added: (one, other) => one.createdAt - other.createdAt,
  });
}

/** `next` is where the actions lead; `menu` is the id of the menu. */
type RowPlace = { readonly next: string; readonly menu: string };

function rowOf(user: ListedUser, page: PageContext<unknown>, place: RowPlace): Row {
  const { username, role, source, createdAt, lastSignIn } = user;
  const isSelf = page.caller?.username === username;
  return [
    html`<strong>${username}</strong>${isSelf && html` <span class="hint">you</span>`}
      ${source === 'oidc' && html`<span class="chip">identity provider</span>`}`,
    html`<span class="chip">${role}</span>`,
    lastSignIn === null ? html`<span class="none">never</span>` : renderAgo(lastSignIn, page.now),
    renderAgo(createdAt, page.now),
    menuOf(user, page, place),
  ];
}

function menuOf(
  { username, role }: ListedUser,
  page: PageContext<unknown>,
  { next, menu }: RowPlace,
): Html | '' {
  const { here, formToken, isReadOnly } = page;
  const target = { formToken, next, fields: { username } };
  return renderMenu(menu, username, [
    html`<a href="${here('update')}?${new URLSearchParams({ username, role, next }).toString()}">Change</a>`,
    // The reader would be signed out at once, so the form asks first.
    page.caller?.username === username
      ? html`<a href="${here('endSessions')}?${new URLSearchParams({ username }).toString()}">End my sessions …</a>`
      : formToken !== '' && actionButton({ ...target, action: here('endSessions'), label: 'End sessions' }),
    formToken !== '' &&
      !isReadOnly &&
      confirmedAction({
        ...target,
        action: here('remove'),
        label: 'Remove',
        subject: username,
        warning: `The user ${username} is removed, and all sessions of ${username} end at once.`,
      }),
  ]);
}
