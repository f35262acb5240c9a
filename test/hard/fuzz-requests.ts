// Generates requests to a server: all operations and resources of its directories, the catalog, and any other address.
import fc from 'fast-check';
import type { Resource } from '../../src/rest/resource.ts';
import { type Entry, walk } from '../../src/rest/tree.ts';
import { among, mostly } from './fuzz-bytes.ts';
import { type FormBody, encodePairs, multipartBody, pairsOf, urlencodedBody } from './fuzz-forms.ts';
import { type FuzzRequest, anyRequest, callers, oddHeaders, pathOf, targetOf, tokens } from './fuzz-http.ts';
import { soapBody } from './fuzz-soap.ts';

/** Hashing a password is slow on purpose: such requests are rare here, and their CPU time is not limited. */
export const isSlowOnPurpose = (url: string): boolean =>
  /\/(generateToken|users\/add|users\/update)\b/.test(url);

type Directories = Readonly<Record<'admin' | 'tokens', Resource>>;

/** A GET request with the fields of the entry in the query. */
function read(entry: Entry, path: fc.Arbitrary<string>): fc.Arbitrary<FuzzRequest> {
  const { fields } = entry.operation ?? entry.resource;
  const query = fc.tuple(
    mostly(
      1,
      fc.constant(''),
      pairsOf(fields).map((pairs) => encodePairs(pairs)),
    ),
    mostly(
      3,
      fc.constant(''),
      among(tokens).map((token) => `token=${token}`),
    ),
    among('¦f=html¦f=html'),
  );
  return fc
    .record({ url: targetOf(path), query, caller: callers, more: oddHeaders })
    .map(({ url, query: parts, caller, more }) => {
      const joined = parts.filter((part) => part !== '').join('&');
      const separator = joined === '' ? '' : url.includes('?') ? '&' : '?';
      return { method: 'GET', url: url + separator + joined, headers: { ...caller, ...more }, body: '' };
    });
}

function withBody(
  url: string,
  types: Record<string, string | undefined>,
  others: Record<string, string>,
  body: string,
): FuzzRequest {
  const given = Object.entries(types).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return { method: 'POST', url, headers: { ...Object.fromEntries(given), ...others }, body };
}

function post(entry: Entry, path: fc.Arbitrary<string>): fc.Arbitrary<FuzzRequest> {
  const pairs = pairsOf((entry.operation ?? entry.resource).fields);
  const form = mostly<FormBody, FormBody>(
    5,
    fc.oneof(urlencodedBody(pairs), multipartBody(pairs)),
    fc.constant({ type: undefined, body: '' }),
  );
  return fc
    .record({ url: targetOf(path), form, caller: callers, more: oddHeaders })
    .map(({ url, form: { type, body }, caller, more }) =>
      withBody(url, { 'content-type': type }, { ...caller, ...more }, body),
    );
}

const soap: fc.Arbitrary<FuzzRequest> = fc
  .record({ sent: soapBody, url: targetOf(among('/services¦/services/')), caller: callers, more: oddHeaders })
  .map(({ sent: { type, coding, body }, url, caller, more }) =>
    withBody(url, { 'content-type': type, 'content-encoding': coding }, { ...caller, ...more }, body),
  );

/** Requests for the pages of all resources without an id. They display the data that earlier requests stored. */
export function pagesOf({ admin }: Directories): FuzzRequest[] {
  const routes = [...walk(admin)].filter(({ operation, route }) => !operation && !route.includes('{'));
  const headers = { authorization: 'Bearer token-of-the-administrator' };
  return routes.map(({ route }) => ({ method: 'GET', url: `/admin/${route}?f=html`, headers, body: '' }));
}

/** `known`: the existing ids of each kind. */
export function requestsTo(
  directories: Directories,
  known: Record<string, string>,
): fc.Arbitrary<FuzzRequest> {
  const entries = [
    ...[...walk(directories.admin)].map((entry) => ({ entry, path: pathOf(entry, '/admin', known) })),
    ...[...walk(directories.tokens)].map((entry) => ({ entry, path: pathOf(entry, '/tokens', known) })),
  ];
  const posts = entries.map(({ entry, path }) => {
    // Operations with more fields are requested more often.
    const weight = entry.operation ? 4 + 2 * Object.keys(entry.operation.fields).length : 2;
    return { weight: isSlowOnPurpose(`/${entry.route}`) ? 2 : weight, arbitrary: post(entry, path) };
  });
  const reads = entries.map(({ entry, path }) => read(entry, path));
  return fc.oneof(
    { weight: 8, arbitrary: fc.oneof(...posts) },
    { weight: 3, arbitrary: fc.oneof(...reads) },
    { weight: 5, arbitrary: soap },
    { weight: 1, arbitrary: anyRequest },
  );
}
