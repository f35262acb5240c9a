// The file with the credentials for registries: what `docker login` writes is read, and everything else is refused
// with a reason.
import { expect, it } from 'vitest';
import {
  parseChallenges,
  parseRegistryAuth,
  readRegistryAuth,
} from '../../src/upgrades/executors/images/registry.ts';
import { expectCost } from '../kit/cost.ts';
import { check, encode, writeAuthFile } from './image-check-kit.ts';

const robot = { username: 'robot', password: 'pass:word' };

const parse = (content: unknown) => parseRegistryAuth(JSON.stringify(content));

it('credentials are found by host, whatever form of the address docker login has written', () => {
  const result = parse({
    auths: {
      'registry.example.com': { auth: encode(robot) },
      'https://Other.example.com:5000/v1/': { ...robot, email: 'robot@example.com' },
      'https://third.example.com/v2/': { auth: encode({ username: 'robot', password: '' }) },
      '[2001:db8::1]:5000': robot,
    },
    HttpHeaders: { 'User-Agent': 'x' },
    credHelpers: {},
    credsStore: '',
  });
  expect('auth' in result && [...result.auth]).toEqual([
    ['registry.example.com', robot],
    ['other.example.com:5000', robot],
    ['third.example.com', { username: 'robot', password: '' }],
    ['[2001:db8::1]:5000', robot],
  ]);
  expect(parse({})).toEqual({ auth: new Map() });
});

const rule =
  'REGISTRY_AUTH_FILE must be a JSON object as docker login writes it: {"auths":{"registry.example.com":{"auth":"…"}}}.';

it.each(['', '[]', 'null', '{"auths":', '"text"'])('the text %j is refused', (text) => {
  expect(parseRegistryAuth(text)).toEqual({ problems: [rule] });
});

it('every problem is listed, without any value of the file', () => {
  const { problems } = parse({
    credsStore: 'desktop',
    credHelpers: { 'registry.example.com': 'cloud' },
    auths: {
      'registry.example.com/team': robot,
      'a.example.com': {},
      'b.example.com': { auth: 'c2VjcmV0' },
      'c.example.com': { identitytoken: 'secret' },
      'd.example.com': { username: 'robot' },
      'e.example.com': 'secret',
      'f.example.com': robot,
    },
  }) as { problems: string[] };
  expect(problems).toEqual([
    'REGISTRY_AUTH_FILE: credsStore names credential helpers, which Steward does not run; write the credentials into auths.',
    'REGISTRY_AUTH_FILE: credHelpers names credential helpers, which Steward does not run; write the credentials into auths.',
    'REGISTRY_AUTH_FILE: auths["registry.example.com/team"] must be a host, such as registry.example.com:5000.',
    'REGISTRY_AUTH_FILE: auths["a.example.com"] must have auth, or username and password.',
    'REGISTRY_AUTH_FILE: auths["b.example.com"] must have an auth that is the base64 form of user:password.',
    'REGISTRY_AUTH_FILE: auths["c.example.com"] has an identitytoken or registrytoken, which Steward does not use; write a user name and a password.',
    'REGISTRY_AUTH_FILE: auths["d.example.com"] must have auth, or username and password.',
    'REGISTRY_AUTH_FILE: auths["e.example.com"] must be an object.',
  ]);
  expect(parse({ auths: [] })).toEqual({
    problems: ['REGISTRY_AUTH_FILE: auths must be an object, with an entry for each host.'],
  });
});

it('a file that does not exist is a problem', async () => {
  expect(await readRegistryAuth('/nowhere/config.json')).toEqual({
    problems: ['REGISTRY_AUTH_FILE cannot be read: ENOENT.'],
  });
  expect(await readRegistryAuth(undefined)).toEqual({ auth: new Map() });
});

it('a file that has become unreadable since the start is a notice of the check, or a problem if it is required', async () => {
  const authFile = writeAuthFile('no JSON');
  const resolve = () => Promise.resolve([]);
  const image = 'registry.example/apps:2';
  const unknown =
    'registry.example: The name registry.example does not resolve. Not checked: registry.example/apps:2.';
  expect(await check([image], { authFile, resolve })).toEqual({ problems: [], notices: [rule, unknown] });
  expect((await check([image], { authFile, resolve, mode: 'required' })).problems).toEqual([
    `images: ${rule}`,
    `images: ${unknown}`,
  ]);
});

it.each<[string, [string, Record<string, string>][]]>([
  ['Basic realm="test"', [['basic', { realm: 'test' }]]],
  ['BEARER Realm="https://a/b",service=s', [['bearer', { realm: 'https://a/b', service: 's' }]]],
  [
    'Basic realm="a, b", Bearer realm="c\\"d" , scope="repository:x:pull,push"',
    [
      ['basic', { realm: 'a, b' }],
      ['bearer', { realm: 'c"d', scope: 'repository:x:pull,push' }],
    ],
  ],
  ['Negotiate', [['negotiate', {}]]],
  ['', []],
  ['=,"', []],
])('the challenge %s is read', (header, expected) => {
  const found = parseChallenges(header).map(({ scheme, parameters }) => [
    scheme,
    Object.fromEntries(parameters),
  ]);
  expect(found).toEqual(expected);
});

it('a hostile challenge is cut before it is read', async () => {
  const hostile = 'a="\\"'.repeat(100_000);
  expect(await expectCost(500, () => parseChallenges(hostile))).toEqual(
    parseChallenges(hostile.slice(0, 4096)),
  );
});
