// Generates methods, addresses, queries and headers, valid and malformed.
import fc from 'fast-check';
import type { Entry } from '../../src/rest/tree.ts';
import { among, anyBytes, mostly, mutated, stretch } from './fuzz-bytes.ts';
import { toHeader } from './fuzz-forms.ts';
import { ids } from './fuzz-values.ts';

/** All strings hold bytes. */
export type FuzzRequest = { method: string; url: string; headers: Record<string, string>; body: string };

const names: Record<string, string> = {
  folder: 'Maps¦Tools¦Operations¦New¦Gr%C3%B6%C3%9Fe¦Maps¦Empty',
  service: 'World.MapServer¦Roads.MapServer¦Diagnostics.GPServer¦Roads.MapServer¦New.X¦World.',
};

/** The path of an entry with ids filled in. `known`: the existing ids of each kind. */
export function pathOf(
  { route }: Entry,
  prefix: string,
  known: Record<string, string>,
): fc.Arbitrary<string> {
  const parts = route.split('/').map((part) => {
    const name = /^\{(.*)\}$/.exec(part)?.[1];
    if (name === undefined) return fc.constant(part);
    const odd = among('%2e%2e¦%2F¦%00¦%¦%zz¦%ED%A0%80¦__proto__¦constructor¦%EF%BB%BF¦*¦nothing¦..¦.');
    return mostly(
      40,
      among(names[name] ?? known[name] ?? ''),
      among(ids),
      among(ids),
      odd,
      anyBytes.map(toTarget),
    );
  });
  return fc.tuple(...parts).map((list) => [prefix, ...list.filter((part) => part !== '')].join('/'));
}

/** Escapes everything that an address must not contain: white space, control characters and non-ASCII bytes. */
export function toTarget(bytes: string): string {
  const escape = (c: string) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`;
  return bytes.replace(/[\0-\x20\x7f-\xff]/g, escape).slice(0, 15_000);
}

const otherPaths = '/¦/health¦/ready¦/metrics¦/admin/openapi.json¦/admin/assets/x.css¦/services¦/services/x';

const anyPath = fc.oneof(
  among(otherPaths),
  among('//¦/..¦/%2e%2e/¦/%¦/%00¦*¦/admin//mode¦/admin/./mode¦/ADMIN¦/admin%2Fmode¦/\\x¦/admin/../health¦/é'),
  among(
    'http://x/admin¦https://x¦http://¦x://y¦/admin;a=b¦/admin#x¦//x/admin¦/%61dmin¦/services%3Fwsdl¦/tokens/?¦?',
  ),
  mutated(among(`${otherPaths}¦/admin/services/Maps/Roads.MapServer/edit`)).map(toTarget),
  anyBytes.map((bytes) => `/${toTarget(bytes)}`),
);

const oddQuery = fc.oneof(
  among(
    'f=html¦f=pjson¦f=xml¦f=json&f=html¦wsdl¦WSDL=x¦?¦&&¦=¦%¦token=x¦token=x&token=y¦__proto__=x¦__proto__[a]=b',
  ),
  among(
    'constructor=1¦a[b][c]=d¦next=//x¦done=<b>¦q=x¦start=-1&num=1e9¦version=pat_x¦version=%00¦start=5¦num=500',
  ),
  among(
    'f=html&q=%F0%9F%98%80¦f=html&start=9999999999¦f=html&folders=3¦f=html&version=rel_x¦f=html&version=pat_x&plan=1',
  ),
  stretch.map((bytes) => `a=${toTarget(bytes)}`),
  stretch.map((bytes) => `f=html&q=${toTarget(bytes)}`),
  anyBytes.map(toTarget),
);

/** A path with or without a query of its own. */
export function targetOf(path: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const query = mostly(
    8,
    fc.constant(''),
    fc.constant('?f=html'),
    oddQuery.map((text) => `?${text}`),
  );
  return fc.tuple(path, query).map((parts) => parts.join(''));
}

const odd: Record<string, string> = {
  accept: 'text/html¦application/json¦*/*¦text/html;q=0.5, application/json;q=¦text/*;q=2¦,¦;q=1¦',
  authorization: 'Bearer¦Bearer ¦bearer  x  y ¦Basic eDp5¦Bearer \t¦Bearer é¦Bearer a, Bearer b¦x',
  cookie:
    'steward_session=¦steward_session=x; steward_session=y¦;;=;¦steward_session¦a=b; steward_session=form_x¦=',
  'x-forwarded-for': '1.2.3.4¦::1, 1.2.3.4¦,,,¦x¦1.2.3.4, 127.0.0.1¦[::1]:80¦fe80::1%25eth0¦%¦]¦1.2.3.4#@/?',
  referer: 'http://x/¦x¦http://[¦about:blank¦//',
  expect: '100-continue¦x¦100-continue, x',
  'content-encoding': 'gzip¦br¦identity¦x¦gzip, gzip¦',
  'content-length': '0¦5¦999999¦-1¦x¦1e3¦18446744073709551616¦5, 5¦+5',
  'transfer-encoding': 'chunked¦gzip, chunked¦identity¦x',
  host: '¦x¦x:y¦[::1]¦a b¦x@y¦/',
  origin: 'null¦http://x¦http://localhost:8080¦',
  'sec-fetch-site': 'same-origin¦cross-site¦none¦',
  'x-http-method-override': 'DELETE',
  soapaction: '""¦"*"¦x¦"',
  'if-none-match': '*¦"x"¦W/"',
  range: 'bytes=0-¦bytes=5-1',
  upgrade: 'websocket¦h2c',
  connection: 'upgrade¦close¦x¦content-length',
  'accept-version': '1¦x',
};

const oddHeader = fc
  .constantFrom(...Object.entries(odd))
  .chain(([name, list]) => fc.tuple(fc.constant(name), among(list)));

const longHeader = fc
  .tuple(
    among(
      'accept¦authorization¦authorization¦cookie¦x-forwarded-for¦referer¦content-type¦origin¦host¦accept-encoding',
    ),
    among('¦Bearer a¦Bearer ¦text/html;¦steward_session=¦1.2.3.4, ¦http://x/'),
    stretch,
    among('¦b'),
  )
  .map(([name, before, bytes, after]): [string, string] => [name, toHeader(`${before}${bytes}${after}`)]);

/** Usually none. */
export const oddHeaders: fc.Arbitrary<Record<string, string>> = mostly(
  5,
  fc.constant({}),
  fc
    .array(mostly(3, oddHeader, longHeader), { minLength: 1, maxLength: 3 })
    .map((list) => Object.fromEntries(list)),
);

export const tokens = 'token-of-the-member¦token-of-the-publisher¦token-of-the-administrator';

/** The credentials of a request. Most are an administrator's, because fewer of those requests are refused. */
export const callers: fc.Arbitrary<Record<string, string>> = mostly(
  10,
  fc.constant({ authorization: 'Bearer token-of-the-administrator' }),
  among(tokens).map((token) => ({ authorization: `Bearer ${token}` })),
  among(tokens).map((token) => ({ cookie: `steward_session=${token}` })),
  fc.constant({}),
);

/** A request with any method to any address. */
export const anyRequest: fc.Arbitrary<FuzzRequest> = fc
  .record({
    method: mostly(
      6,
      among('GET¦GET¦HEAD¦POST'),
      among('PUT¦DELETE¦PATCH¦OPTIONS¦TRACE¦QUERY¦PROPFIND¦CONNECT¦LOCK'),
    ),
    url: targetOf(anyPath),
    caller: callers,
    more: oddHeaders,
    body: mostly(1, fc.constant(''), anyBytes),
  })
  .map(({ method, url, caller, more, body }) => ({ method, url, headers: { ...caller, ...more }, body }));
