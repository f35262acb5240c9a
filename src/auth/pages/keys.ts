// The pages of keys: those of the reader, and those of all users.
import { formHref, linkButton } from '../../console/action.ts';
import {
  type ListColumn,
  allEntries,
  renderEmpty,
  renderListPage,
  selectEntries,
} from '../../console/list.ts';
import { compareNaturally, renderMenu, renderMissing } from '../../console/table.ts';
import { renderAgo, renderTime } from '../../console/time.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { Key } from '../key.ts';

export type ListedKey = Omit<Key, 'hash' | 'username'>;

type UserKey = Omit<Key, 'hash'>;

/** Also a part of the page of the account. */
export function ownKeysView(keys: readonly ListedKey[], page: PageContext<unknown>): Html {
  const at = (operation: string) => page.href('security', 'self', 'keys', operation);
  return renderListPage(page, allEntries(keys), {
    noun: 'key',
    label: 'Your keys',
    actions: createButton(page),
    empty: renderEmpty('You have no keys. A program uses a key instead of your password.'),
    columns: keyColumns(page, at('delete')),
  });
}

const createButton = (page: PageContext<unknown>): Html =>
  linkButton(page, formHref(page, page.href('security', 'self', 'keys', 'create')), 'Create key');

const byName = (one: UserKey, other: UserKey) => compareNaturally(one.name, other.name);

export function keysView(keys: readonly UserKey[], page: PageContext<unknown>): Html {
  const list = selectEntries(keys, page, {
    textOf: ({ name, username }) => `${name}\n${username}`,
    orders: {
      created: { compare: (one, other) => one.createdAt - other.createdAt, isDescending: true },
      name: { compare: byName },
      user: {
        compare: (one, other) => compareNaturally(one.username, other.username) || byName(one, other),
      },
      lastUse: {
        compare: (one, other) => (one.lastUsedAt ?? 0) - (other.lastUsedAt ?? 0),
        isDescending: true,
      },
      expires: {
        compare: (one, other) =>
          (one.expires ?? Infinity) - (other.expires ?? Infinity) || byName(one, other),
      },
    },
    usual: 50,
  });
  const [key, ...others] = keyColumns<UserKey>(page, page.here('delete'));
  return renderListPage(page, list, {
    noun: 'key',
    label: 'All keys',
    search: 'Search keys and users',
    actions: createButton(page),
    empty: renderEmpty('No user has a key. A program uses a key instead of a password.'),
    columns: [
      ...(key ? [key] : []),
      { label: 'User', sort: 'user', cell: ({ username }) => username },
      ...others,
    ],
  });
}

type KeyOrder = 'created' | 'name' | 'user' | 'lastUse' | 'expires';

const never = renderMissing('never');

/** `deletion` is the operation that deletes a key. */
function keyColumns<K extends ListedKey>(
  page: PageContext<unknown>,
  deletion: string,
): ListColumn<K, KeyOrder>[] {
  const { now } = page;
  return [
    { label: 'Key', sort: 'name', cell: ({ name }) => html`<strong><bdi>${name}</bdi></strong>` },
    { label: 'Role', cell: ({ role }) => html`<span class="chip">${role}</span>` },
    { label: 'Created', sort: 'created', cell: ({ createdAt }) => renderAgo(createdAt, now) },
    {
      label: 'Last use',
      sort: 'lastUse',
      cell: ({ lastUsedAt, lastAddress }) =>
        lastUsedAt === null
          ? never
          : html`${renderAgo(lastUsedAt, now)}${lastAddress !== null && html` <span class="hint">${lastAddress}</span>`}`,
    },
    { label: 'Expires', sort: 'expires', cell: ({ expires }) => expiryView(expires, now) },
    {
      label: 'Actions',
      cell: ({ id, name }) =>
        renderMenu(`key-${id}`, name, [
          html`<a class="destructive" href="${formHref(page, deletion, { id })}">Delete …</a>`,
        ]),
    },
  ];
}

function expiryView(expires: number | null, now: number): Html {
  if (expires === null) return never;
  return expires <= now ? html`<span class="state bad">expired</span>` : renderTime(expires);
}
