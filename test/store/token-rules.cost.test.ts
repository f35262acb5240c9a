// Tests the rules for tokens in the state of a store.
import { expect, it } from 'vitest';
import { type Token, addToken, endTokens, expiredTokens, tokens, tokensOf } from '../../src/auth/token.ts';
import type { Store } from '../../src/store/store.ts';
import { expectCost } from '../kit/cost.ts';
import { openMemory } from './backends.ts';
import { token } from './definitions.ts';

const hashes = (all: readonly Token[]) => all.map(({ hash }) => hash);

async function openWith(...all: readonly Token[]): Promise<Store> {
  const store = await openMemory();
  await store.update((transaction) => {
    for (const one of all) transaction.put(tokens, one);
  });
  return store;
}

it('lists the tokens of a user, newest first', async () => {
  const store = await openWith(
    token('h1', 1),
    token('h3', 3),
    token('h2', 2),
    token('other', 4, { username: 'anna' }),
  );
  expect(hashes(tokensOf(store, 'Ann'))).toEqual(['h3', 'h2', 'h1']);
  expect(tokensOf(store, 'an')).toEqual([]);
});

it('ends all tokens of a user except one', async () => {
  const store = await openWith(token('h1', 1), token('h2', 2), token('other', 3, { username: 'bob' }));
  await store.update((transaction) => endTokens(transaction, 'Ann', 'h1'));
  expect(tokensOf(store, 'Ann')).toEqual([token('h1', 1)]);
  await store.update((transaction) => endTokens(transaction, 'Ann'));
  expect(hashes([...store.all(tokens)])).toEqual(['other']);
});

it('ends the oldest tokens of the user so that at most the given number is left', async () => {
  const store = await openWith(token('other', 0, { username: 'bob' }));
  const add = (one: Token, max: number) => store.update((transaction) => addToken(transaction, one, max));
  for (const n of [1, 2, 3, 4]) await add(token(`h${n}`, n), 3);
  expect(hashes(tokensOf(store, 'Ann'))).toEqual(['h4', 'h3', 'h2']);
  await add(token('h5', 5), 1);
  expect(hashes([...store.all(tokens)])).toEqual(['other', 'h5']);
});

it('does not count tokens that have expired', async () => {
  const store = await openWith(token('valid', 1, { expires: 100 }), token('expired', 2, { expires: 10 }));
  await store.update((transaction) => addToken(transaction, token('new', 10), 2));
  expect(hashes(tokensOf(store, 'Ann'))).toEqual(['new', 'valid']);
});

it('lists, adds and ends the tokens of a user fast among 100,000', async () => {
  const many = Array.from({ length: 100_000 }, (_, n) => token(`h${n}`, n, { username: `user${n % 1000}` }));
  const store = await openWith(...many);
  expect(await expectCost(50, () => tokensOf(store, 'user7'))).toHaveLength(100);
  const added = token('new', 200_000, { username: 'user7' });
  await expectCost(50, () => store.update((transaction) => addToken(transaction, added, 100)));
  await expectCost(50, () => store.update((transaction) => endTokens(transaction, 'user8')));
  expect(store.count(tokens)).toBe(99_801);
  expect(await expectCost(50, () => expiredTokens(store, 0))).toEqual([]);
});

it('finds expired tokens', async () => {
  const store = await openWith(token('h1', 1, { expires: 10 }), token('h2', 2, { expires: 11 }));
  expect(hashes(expiredTokens(store, 10))).toEqual(['h1']);
});
