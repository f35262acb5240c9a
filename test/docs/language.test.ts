// Tests that documents and texts for users do not use phrases that need a second reading.
import { describe, expect, it } from 'vitest';
import { codes } from '../../src/upgrades/jobs/messages.ts';
import { proseOf, readDocument, readDocuments } from './documents.ts';
import { forbiddenPhrases } from './language.ts';
import { textsOf } from './reference/errors.ts';
import { readOpenApi } from './reference/openapi.ts';

it.each(readDocuments().map(({ path, text }) => [path, text]))('%s uses plain words', (path, text) => {
  expect(forbiddenPhrases(path, proseOf(text))).toEqual([]);
});

it('.env.example uses plain words', () => {
  const { path, text } = readDocument('.env.example');
  expect(forbiddenPhrases(path, text)).toEqual([]);
});

it('the OpenAPI document and the messages of jobs use plain words', async () => {
  const descriptions = JSON.stringify(await readOpenApi(), null, 1);
  const messages = codes.flatMap(textsOf).join('\n');
  expect([
    ...forbiddenPhrases('openapi.json', descriptions),
    ...forbiddenPhrases('messages', messages),
  ]).toEqual([]);
});

describe('the word list', () => {
  it.each([
    'The client is told the address.',
    'It tells others.',
    'what stands against the upgrade',
    'while the database is away',
    'for whoever asks',
    'somebody with a backup',
    'where its name is none',
    'where the manifest is had',
    'The key is made up.',
    'The rollout is seen through.',
    'Steward sees through the rollout.',
    'stops at the next border',
    'All that is stored is lost.',
    'It stays as it is.',
    'attempts under way',
    'is borne with for a minute',
    'the connection is let go of',
    'Mend the manifest.',
    'The courier goes on.',
    'as the specification says',
  ])('refuses “%s”', (text) => {
    expect(forbiddenPhrases('page.md', text)).toHaveLength(1);
  });

  it('accepts plain words', () => {
    const text = 'None is required. As it is stored, wait. He moved away. Recommended. A specification.';
    expect(forbiddenPhrases('page.md', text)).toEqual([]);
  });

  it('gives the line and what to write', () => {
    expect(forbiddenPhrases('page.md', 'One.\nThe key is made up.')).toEqual([
      'page.md:2: write “generated, or consists of” instead of “made up”.',
    ]);
  });

  it('ignores code and quotations', () => {
    expect(
      forbiddenPhrases('page.md', proseOf('`is told` "is told" “is told”\n\n```sh\necho "is told"\n```\n')),
    ).toEqual([]);
  });
});
