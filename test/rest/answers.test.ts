// Every route declares the schema of its answer, and the test kit refuses an answer that does not have it.
import { describe, expect, it } from 'vitest';
import type { Resource } from '../../src/rest/resource.ts';
import { wrongAnswers } from '../kit/check-answers.js';
import { startServer } from '../kit/server.ts';

describe('the check of all answers', () => {
  async function readMode(answer: object): Promise<number> {
    const server = await startServer();
    Object.assign(server.app.trees.admin.resources.mode as Resource, { read: () => answer });
    const headers = { authorization: `Bearer ${server.token('member')}` };
    return (await server.get('/admin/mode', headers)).statusCode;
  }
  const good = { isReadOnly: false, reason: null, message: '' };

  it('accepts an answer with the declared schema', async () => {
    expect(await readMode(good)).toBe(200);
    expect(wrongAnswers).toEqual([]);
  });

  it.each([
    ['a field of another type', { ...good, isReadOnly: 'no' }],
    ['a field that is not declared', { ...good, since: 1 }],
    ['a missing field', { isReadOnly: false, reason: null }],
    ['an error that is not an error body', { status: 'error', error: { code: 1 } }],
  ])('refuses %s', async (_what, answer) => {
    expect(await readMode(answer)).toBe(500);
    expect(wrongAnswers.splice(0)).toHaveLength(1);
  });
});
