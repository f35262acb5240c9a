// Sign-in at an identity provider with two processes: the start at one, the callback at the other.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type IdentityProvider, startProvider } from '../kit/identity-provider.ts';
import { entriesOf } from '../audit/kit.ts';
import { ann, callBack, selfOf, sessionOf, signIn, startSignIn, startWith } from './oidc-kit.ts';

let provider: IdentityProvider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

it('starts at one process and ends at another, and both know the user', async () => {
  const one = await startWith(provider);
  const other = await startWith(provider, { store: await one.store.reopen() });
  const { callback, cookie } = await startSignIn(one, provider);
  const response = await callBack(other, callback, cookie);
  const ann = { username: 'ann', role: 'administrator', source: 'oidc' };
  expect(response.statusCode).toBe(200);
  expect([await selfOf(one, response), await selfOf(other, response)]).toEqual([ann, ann]);
});

it('ends the user, the sessions and the keys of whom the provider gives no role any more', async () => {
  const one = await startWith(provider);
  const other = await startWith(provider, { store: await one.store.reopen() });
  const session = sessionOf(await signIn(one, provider));
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const created = await one.post(
    '/admin/security/self/keys/create',
    { name: 'nightly' },
    bearer(session.split('=')[1] ?? ''),
  );
  const { key } = created.json<{ key: string }>();
  const statuses = () =>
    Promise.all(
      [one, other].flatMap((on) =>
        [{ cookie: session }, bearer(key)].map(
          async (headers) => (await on.get('/admin', headers)).statusCode,
        ),
      ),
    );
  expect(await statuses()).toEqual([200, 200, 200, 200]);
  provider.users.set('1', { preferred_username: 'ann', groups: ['unknown'] });
  const refused = await signIn(one, provider);
  expect([refused.statusCode, refused.body.includes('You have no role here.')]).toEqual([403, true]);
  await expect.poll(statuses).toEqual([401, 401, 401, 401]);
  const [refusal, removal] = await entriesOf(one);
  expect(refusal).toMatchObject({ outcome: 'refused', code: 403, user: null, changes: [] });
  expect(removal).toMatchObject({ outcome: 'success', user: null, target: 'security/users/ann' });
  expect(removal?.changes).toContainEqual({
    field: 'users/ann.role',
    before: 'administrator',
    after: null,
  });
  // A role that comes back brings no earlier key back.
  provider.users.set('1', ann);
  expect((await signIn(one, provider)).statusCode).toBe(200);
  expect(await statuses()).toEqual([401, 401, 401, 401]);
});

it('adds a user once who signs in at two processes at the same time', async () => {
  const one = await startWith(provider);
  const other = await startWith(provider, { store: await one.store.reopen() });
  const attempts = await Promise.all([one, other].map((on) => startSignIn(on, provider)));
  const responses = await Promise.all(
    attempts.map(({ callback, cookie }, index) => callBack(index === 0 ? one : other, callback, cookie)),
  );
  expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
  // Each session belongs to the same user.
  for (const response of responses)
    expect([await selfOf(one, response), await selfOf(other, response)]).toEqual([
      { username: 'ann', role: 'administrator', source: 'oidc' },
      { username: 'ann', role: 'administrator', source: 'oidc' },
    ]);
});
