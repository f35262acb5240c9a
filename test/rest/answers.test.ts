// Every route declares the schema of its answer, and the test kit refuses an answer that does not have it.
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { answerFields } from '../../src/rest/answer.ts';
import { type Resource, answerOf, walk } from '../../src/rest/resource.ts';
import { wrongAnswers } from '../kit/check-answers.js';
import { type Server, startServer } from '../kit/server.ts';

let server: Server | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

describe('the check of all answers', () => {
  async function readMode(answer: object): Promise<number> {
    server = await startServer();
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

describe('the schemas', () => {
  it('describe the fields of every answer', async () => {
    server = await startServer();
    for (const entry of Object.values(server.app.trees).flatMap((root) => [...walk(root)])) {
      expect(answerFields(answerOf(entry)).length, entry.route).toBeGreaterThan(0);
    }
  });

  it('are listed field by field, with inner fields, choices and what may be null or missing', () => {
    const schema = z.strictObject({
      state: z.enum(['on', 'off']).describe('Its state.'),
      note: z.string().optional().describe('A note.'),
      list: z.array(z.strictObject({ at: z.int().nullable() })),
      other: z.unknown(),
    });
    expect(answerFields(schema)).toEqual([
      { path: 'state', type: '"on" or "off"', description: 'Its state.' },
      { path: 'note', type: 'string', description: 'Optional. A note.' },
      { path: 'list', type: 'array of object', description: '' },
      { path: 'list[].at', type: 'integer or null', description: '' },
      { path: 'other', type: 'any', description: '' },
    ]);
  });
});
