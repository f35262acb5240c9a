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
