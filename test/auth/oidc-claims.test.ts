// The name and the role that the claims of an identity provider give a user.
import { expect, it } from 'vitest';
import { type ClaimRules, accountOf } from '../../src/auth/oidc/claims.ts';
import { ServiceError } from '../../src/lib/errors.ts';

const rules: ClaimRules = {
  username: ['preferred_username', 'email'],
  roles: 'groups',
  roleOf: new Map([
    ['operations', 'administrator'],
    ['editors', 'publisher'],
  ]),
  defaultRole: undefined,
};
const ann = { preferred_username: 'ann', groups: ['operations'] };
const editor = { email: 'a@example.com', groups: 'editors' };

it('a user without a group that has a role has no account', () => {
  expect(accountOf({ ...ann, groups: ['unknown'] }, rules)).toBeUndefined();
});

it.each<[string, Record<string, unknown>, Partial<ClaimRules>, string]>([
  [
    'the highest of several groups',
    { groups: ['editors', 'unknown', 'operations', 'editors'] },
    {},
    'administrator',
  ],
  ['a group as a text', { groups: 'editors' }, {}, 'publisher'],
  ['the default without a group', { groups: [] }, { defaultRole: 'member' }, 'member'],
  ['the default without the claim', {}, { defaultRole: 'member' }, 'member'],
  [
    'the default with hostile groups',
    { groups: [{ toString: 'operations' }, null, 7, '__proto__', 'constructor'] },
    { defaultRole: 'member' },
    'member',
  ],
  [
    'a claim with dots in its name',
    { 'https://a.example/roles': 'editors' },
    { roles: 'https://a.example/roles' },
    'publisher',
  ],
  ['a claim inside an object', { a: { b: ['editors'] } }, { roles: 'a.b' }, 'publisher'],
])('a user gets the role of %s', (_, claims, given, role) => {
  const account = accountOf({ preferred_username: 'ann', ...claims }, { ...rules, ...given });
  expect(account).toEqual({ username: 'ann', role });
});

it.each<[string, Record<string, unknown>, string]>([
  ['the preferred one', { ...ann, email: 'a@example.com' }, 'ann'],
  ['the email address', { ...editor, email_verified: true }, 'a@example.com'],
  ['an address with a text for true', { ...editor, email_verified: 'true' }, 'a@example.com'],
])('a user gets the name: %s', (_, claims, username) => {
  expect(accountOf(claims, rules)).toMatchObject({ username });
});

const notAllowed = 'preferred_username must be 1 to 64 letters a to z, digits or . _ @ -';
const notVerified = 'The identity provider has not verified your email address.';

it.each<[string, Record<string, unknown>, string]>([
  ['no name', { groups: ['operations'] }, 'It must give the claim preferred_username or email.'],
  ['a name that is no text', { ...ann, preferred_username: ['ann'] }, `${notAllowed}.`],
  ['an empty name', { ...ann, preferred_username: '' }, notAllowed],
  ['control characters in the name', { ...ann, preferred_username: 'ann\r\nSet-Cookie: x=y' }, notAllowed],
  ['a name that looks like another', { ...ann, preferred_username: 'аdministrator' }, notAllowed],
  ['an address that is not verified', { ...editor, email_verified: false }, notVerified],
  ['an address with a text for false', { ...editor, email_verified: 'false' }, notVerified],
  ['an address of which nothing is said', editor, notVerified],
])('a user with %s is refused', (_, claims, text) => {
  const refusal = (() => {
    try {
      return accountOf(claims, rules);
    } catch (error) {
      return error;
    }
  })();
  expect(refusal).toBeInstanceOf(ServiceError);
  const { kind, message, problems } = refusal as ServiceError;
  expect([kind, [message, ...problems.map((problem) => problem.message)].join(' ')]).toEqual([
    'forbidden',
    expect.stringContaining(text),
  ]);
});
