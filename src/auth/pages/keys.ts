// The pages of keys: those of the reader, and those of all users.
import { confirmedAction, linkButton } from '../../console/action.ts';
import {
  type Row,
  compareNaturally,
  listAddress,
  listParameters,
  pageRange,
  renderEmpty,
  renderList,
  renderMenu,
  renderPager,
  renderToolbar,
  sortBy,
  sortableColumn,
  sortingOf,
} from '../../console/table.ts';
import { renderAgo, renderTime } from '../../console/time.ts';
import { formatCount } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Key } from '../key.ts';

export type ListedKey = Omit<Key, 'hash' | 'username'>;

export type UserKey = Omit<Key, 'hash'>;

/** Also a part of the page of the account. */
export function ownKeysView(keys: readonly ListedKey[], page: PageContext<unknown>): Html {
  const at = (operation: string) => page.href('security', 'self', 'keys', operation);
  const create = `${at('create')}?next=${encodeURIComponent(page.here())}`;
  const place = { action: at('delete'), next: page.here() };
  return html`${renderToolbar({
    action: page.here(),
    count: formatCount(keys.length, 'key'),
    actions: linkButton(page, create, 'Create key', 'second'),
  })}
    ${
      keys.length === 0
        ? renderEmpty('You have no keys. A program uses a key instead of your password.')
        : renderList(
            'Your keys',
            ['Key', 'Role', 'Created', 'Last use', 'Expires', 'Actions'],
            keys.map((key) => rowOf(key, page, place)),
          )
    }`;
}

const orders = {
  created: 'descending',
  name: 'ascending',
  user: 'ascending',
  lastUse: 'descending',
  expires: 'ascending',
} as const;

export function keysView(keys: readonly UserKey[], page: PageContext<unknown>): Html {
  const keep = listParameters(page.query, ['q', 'sort', 'order']);
  const { q: search = '', ...sortedBy } = keep;
  const sorting = sortingOf(page.query, orders);
  const column = (label: string, key: keyof typeof orders) => sortableColumn(label, key, sorting, keep);
  const words = search.trim().toLowerCase();
  const found = keys.filter(({ name, username }) =>
    [name, username].some((text) => text.toLowerCase().includes(words)),
  );
  const byName = (one: UserKey, other: UserKey) => compareNaturally(one.name, other.name);
  const listed = sortBy(found, sorting, {
    created: (one, other) => one.createdAt - other.createdAt,
    name: byName,
    user: (one, other) => compareNaturally(one.username, other.username) || byName(one, other),
    lastUse: (one, other) => (one.lastUsedAt ?? 0) - (other.lastUsedAt ?? 0),
    expires: (one, other) => (one.expires ?? Infinity) - (other.expires ?? Infinity) || byName(one, other),
  });
  const range = pageRange(page.query, { usual: 50 });
  const shown = listed.slice(range.start, range.start + range.num);
  const place = { action: page.here('delete'), next: listAddress(page, []) };
  return html`${renderToolbar({
    action: page.here(),
    search: { label: 'Search keys and users', value: search },
    keep: sortedBy,
    count: formatCount(listed.length, 'key'),
  })}
    ${
      keys.length === 0
        ? renderEmpty('No user has a key. Users create keys in their own accounts.', {
            href: page.href('security', 'self'),
            label: 'Open your account',
          })
        : listed.length === 0
          ? renderEmpty('No key matches.', { href: page.here(), label: 'Remove the filters' })
          : renderList(
              'All keys',
              [
                column('Key', 'name'),
                column('User', 'user'),
                'Role',
                column('Created', 'created'),
                column('Last use', 'lastUse'),
                column('Expires', 'expires'),
                'Actions',
              ],
              shown.map((key) => rowOf(key, page, place, key.username)),
            )
    }
    ${renderPager('Keys', range, listed.length, { keep })}`;
}

/** The operation that deletes a key, and where it leads. */
type RowPlace = { readonly action: string; readonly next: string };

function rowOf(key: ListedKey, page: PageContext<unknown>, place: RowPlace, username?: string): Row {
  const { id, name, role, createdAt, expires, lastUsedAt, lastAddress } = key;
  const { formToken, now } = page;
  return [
    html`<strong><bdi>${name}</bdi></strong>`,
    ...(username === undefined ? [] : [username]),
    html`<span class="chip">${role}</span>`,
    renderAgo(createdAt, now),
    lastUsedAt === null
      ? html`<span class="none">never</span>`
      : html`${renderAgo(lastUsedAt, now)}${lastAddress !== null && html` <span class="hint">${lastAddress}</span>`}`,
    expires === null
      ? html`<span class="none">never</span>`
      : expires <= now
        ? html`<span class="state bad">expired</span>`
        : renderTime(expires),
    renderMenu(`key-${id}`, name, [
      formToken !== '' &&
        confirmedAction({
          ...place,
          formToken,
          fields: { id },
          label: 'Delete',
          subject: name,
          warning: `Programs that use the key ${name} are refused at once.`,
        }),
    ]),
  ];
}
