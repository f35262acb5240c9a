// The page of the own account: its sessions, its keys, and the password.
import { formHref, linkButton, pageButton } from '../../console/action.ts';
import { renderAgo, renderTime } from '../../console/time.ts';
import { type Row, renderFacts, renderMissing, renderTable } from '../../console/table.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { Token } from '../token.ts';
import type { User, UserSource } from '../user.ts';
import { type ListedKey, ownKeysView } from './keys.ts';

type Account = Pick<User, 'username' | 'role' | 'createdAt'> & {
  readonly source: UserSource;
  readonly sessions: readonly OwnSession[];
};

type OwnSession = Pick<Token, 'id' | 'createdAt' | 'expires' | 'address' | 'userAgent' | 'lastUsedAt'> & {
  readonly current: boolean;
};

export function accountView(page: PageContext<unknown, Account>, keys: readonly ListedKey[]): Html {
  const { username, role, source, createdAt, sessions } = page.json;
  return html`${renderFacts([
    ['User name', username],
    ['Role', html`<span class="chip">${role}</span>`],
    ['Sign-in', source === 'local' ? 'with a password' : 'at the identity provider'],
    ['Account created', renderAgo(createdAt, page.now)],
  ])}
    ${source === 'local' && html`<p class="lead-actions">${linkButton(page, formHref(page, page.here('changePassword')), 'Change password')}</p>`}
    <section aria-labelledby="sessions">
      <h2 id="sessions">Your sessions</h2>
      ${renderTable(
        'Sessions',
        ['Session', 'From', 'Signed in', 'Last use', 'Ends', 'Actions'],
        sessions.map((session) => rowOf(session, page)),
      )}
    </section>
    <section aria-labelledby="keys">
      <h2 id="keys">Your keys</h2>
      ${ownKeysView(keys, page)}
    </section>`;
}

function rowOf(session: OwnSession, page: PageContext<unknown>): Row {
  const { id, createdAt, expires, address, userAgent, lastUsedAt, current } = session;
  const end = pageButton(page, {
    action: page.here('endSession'),
    label: 'End session',
    fields: { id },
    isDestructive: true,
    worksWhileReadOnly: true,
  });
  return [
    userAgent === null ? unknown : html`<span title="${userAgent}">${programOf(userAgent)}</span>`,
    address ?? unknown,
    renderAgo(createdAt, page.now),
    current ? 'now' : renderAgo(lastUsedAt, page.now),
    renderTime(expires),
    current ? html`<span class="chip">this session</span>` : end || '–',
  ];
}

const unknown = renderMissing('unknown');

/** The first that a User-Agent contains counts: most browsers also name those that they are compatible with. */
const browsers: readonly (readonly [part: RegExp, name: string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const systems: readonly (readonly [part: RegExp, name: string])[] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMacintosh\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
];

/** Such as `Firefox on Windows`; of another program its name, such as `curl`. */
function programOf(userAgent: string): string {
  const find = (known: typeof browsers) => known.find(([part]) => part.test(userAgent))?.[1];
  const [browser, system] = [find(browsers), find(systems)];
  if (browser === undefined) return userAgent.split(/[/\s(]/, 1)[0] || 'unknown';
  return system === undefined ? browser : `${browser} on ${system}`;
}
