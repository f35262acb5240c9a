// Contract of the token store; every store runs this suite.
import { describe, expect, it } from 'vitest';
import type { Token } from '../../src/auth/token.ts';
import { backends, openElsewhere } from './backends.ts';
import { auditEntry, token, tryToChange } from './definitions.ts';

const hashes = (tokens: readonly Token[]) => tokens.map(({ hash }) => hash);

describe.each(backends)('the token store of the %s store', (_name, open) => {
  it('is empty at first', async () => {
    const { tokens } = await open();
    expect(await tokens.find('h')).toBeUndefined();
    expect(await tokens.list('ann')).toEqual([]);
    expect(await tokens.lastSignIns()).toEqual(new Map());
    await tokens.end('h', undefined);
    await tokens.removeExpired(1e9);
  });

  it('finds issued tokens by their hash, exactly', async () => {
    const store = await open();
    const bound = token('Hash', 5, { binding: { to: 'referer', value: 'https://a.example/"x"' } });
    await store.tokens.issue(bound, 9, auditEntry());
    await store.tokens.issue(token('hash', 6, { username: 'bob' }), 9, auditEntry());
    for (const { tokens } of [store, await openElsewhere(store)]) {
      expect(await tokens.find('Hash')).toEqual(bound);
      expect(await tokens.find('hash')).toEqual(token('hash', 6, { username: 'bob' }));
      expect(await tokens.find('HASH')).toBeUndefined();
    }
  });

  it('records the program of a sign-in and the last use', async () => {
    const store = await open();
    const issued = token('h', 5, { userAgent: 'Program/1 (é)' });
    await store.tokens.issue(issued, 9, auditEntry());
    expect(await store.tokens.find('h')).toEqual(issued);
    await store.tokens.use('h', 70);
    await store.tokens.use('none', 70);
    for (const { tokens } of [store, await openElsewhere(store)]) {
      expect(await tokens.find('h')).toEqual({ ...issued, lastUsedAt: 70 });
      expect(await tokens.list('ann')).toEqual([{ ...issued, lastUsedAt: 70 }]);
    }
  });

  it('finds a token that was looked up before it was issued', async () => {
    const { tokens } = await open();
    expect(await tokens.find('h')).toBeUndefined();
    await tokens.issue(token('h'), 9, auditEntry());
    expect(await tokens.find('h')).toEqual(token('h'));
  });

  it('returns tokens through which the stored ones cannot be changed', async () => {
    const { tokens } = await open();
    await tokens.issue(token('h'), 9, auditEntry());
    for (const one of [await tokens.find('h'), await tokens.find('h'), ...(await tokens.list('ann'))])
      tryToChange(one, { expires: 1e9 });
    expect(await tokens.find('h')).toEqual(token('h'));
    expect(await tokens.list('ann')).toEqual([token('h')]);
  });

  it('lists the tokens of a user, ignoring case, newest first', async () => {
    const { tokens } = await open();
    await tokens.issue(token('h1', 1), 9, auditEntry());
    await tokens.issue(token('h3', 3, { username: 'ANN' }), 9, auditEntry());
    await tokens.issue(token('h2', 2, { username: 'ann' }), 9, auditEntry());
    await tokens.issue(token('other', 4, { username: 'anna' }), 9, auditEntry());
    expect(hashes(await tokens.list('aNN'))).toEqual(['h3', 'h2', 'h1']);
    expect(hashes(await tokens.list('anna'))).toEqual(['other']);
    expect(await tokens.list('an')).toEqual([]);
  });

  it('ends one token', async () => {
    const { tokens } = await open();
    for (const [index, hash] of ['h1', 'h2'].entries())
      await tokens.issue(token(hash, index), 9, auditEntry());
    expect(await tokens.find('h1')).toBeDefined();
    await tokens.end('h1', undefined);
    expect(await tokens.find('h1')).toBeUndefined();
    expect(hashes(await tokens.list('ann'))).toEqual(['h2']);
    await tokens.end('h1', undefined);
    expect(await tokens.find('h2')).toBeDefined();
  });

  it('ends all tokens of a user within an update, ignoring case', async () => {
    const store = await open();
    const { tokens } = store;
    await tokens.issue(token('h1', 1), 9, auditEntry());
    await tokens.issue(token('h2', 2, { username: 'ann' }), 9, auditEntry());
    await tokens.issue(token('other', 3, { username: 'bob' }), 9, auditEntry());
    for (const hash of ['h1', 'h2']) expect(await tokens.find(hash)).toBeDefined();
    await store.update((transaction) => transaction.tokens.endAll('aNN'));
    for (const hash of ['h1', 'h2']) expect(await tokens.find(hash)).toBeUndefined();
    expect(await tokens.list('ann')).toEqual([]);
    expect(await tokens.find('other')).toBeDefined();
    // A sign-in stays known, and the user can sign in again.
    expect((await tokens.lastSignIns()).get('ann')).toBe(2);
    await tokens.issue(token('h3', 4), 9, auditEntry());
    expect(hashes(await tokens.list('ann'))).toEqual(['h3']);
  });

  it('ends the oldest tokens of the user so that at most the given number is left', async () => {
    const { tokens } = await open();
    await tokens.issue(token('other', 0, { username: 'bob' }), 2, auditEntry());
    for (const n of [1, 2, 3]) await tokens.issue(token(`h${n}`, n), 3, auditEntry());
    expect(hashes(await tokens.list('ann'))).toEqual(['h3', 'h2', 'h1']);
    await tokens.issue(token('h4', 4, { username: 'ANN' }), 3, auditEntry());
    expect(hashes(await tokens.list('ann'))).toEqual(['h4', 'h3', 'h2']);
    expect(await tokens.find('h1')).toBeUndefined();
    // A lower limit ends several.
    await tokens.issue(token('h5', 5), 1, auditEntry());
    expect(hashes(await tokens.list('ann'))).toEqual(['h5']);
    expect(await tokens.find('other')).toBeDefined();
  });

  it('does not count tokens that have expired', async () => {
    const { tokens } = await open();
    await tokens.issue(token('old', 1, { expires: 100 }), 2, auditEntry());
    await tokens.issue(token('expired', 2, { expires: 10 }), 2, auditEntry());
    await tokens.issue(token('new', 10), 2, auditEntry());
    const left = hashes(await tokens.list('ann')).filter((hash) => hash !== 'expired');
    expect(left).toEqual(['new', 'old']);
  });

  it('records when each user signed in last, by name in lower case', async () => {
    const { tokens } = await open();
    await tokens.issue(token('h1', 5), 1, auditEntry());
    await tokens.issue(token('h2', 7, { username: 'ANN' }), 1, auditEntry());
    await tokens.issue(token('h3', 6, { username: 'Bob' }), 1, auditEntry());
    const expected = new Map([
      ['ann', 7],
      ['bob', 6],
    ]);
    expect(await tokens.lastSignIns()).toEqual(expected);
    await tokens.end('h2', undefined);
    await tokens.removeExpired(1e9);
    expect(await tokens.lastSignIns()).toEqual(expected);
  });

  it('removes expired tokens', async () => {
    const { tokens } = await open();
    await tokens.issue(token('h1', 1, { expires: 10 }), 9, auditEntry());
    await tokens.issue(token('h2', 2, { expires: 11 }), 9, auditEntry());
    await tokens.issue(token('h3', 3, { expires: 12, username: 'bob' }), 9, auditEntry());
    await tokens.removeExpired(11);
    expect(await tokens.list('ann')).toEqual([]);
    expect(hashes(await tokens.list('bob'))).toEqual(['h3']);
    await tokens.removeExpired(11);
    expect(hashes(await tokens.list('bob'))).toEqual(['h3']);
  });

  it('removes many expired tokens', async () => {
    const { tokens } = await open();
    const many = Array.from({ length: 50 }, (_, n) => n);
    await Promise.all(
      many.map((n) => tokens.issue(token(`h${n}`, n, { expires: n + 100 }), 100, auditEntry())),
    );
    await tokens.removeExpired(130);
    expect(await tokens.list('ann')).toHaveLength(19);
  });
});
