// Sign-in at an identity provider with two processes: the start at one, the callback at the other.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type IdentityProvider, startProvider } from '../kit/identity-provider.ts';
import { callBack, selfOf, startSignIn, startWith } from './oidc-kit.ts';

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
  await other.close();
  await one.close();
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
  await other.close();
  await one.close();
});
