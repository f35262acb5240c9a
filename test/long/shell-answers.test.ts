// Tests the comparison of shown answers with real ones: what is masked, what `…` omits, and that a wrong answer is
// found.
import { describe, expect, it } from 'vitest';
import { isAnswer, mask } from '../documents/answers.ts';
import { type Page, parsePage } from '../documents/pages.ts';
import { runPage } from '../documents/run.ts';

const json = (shown: string, output: string) => isAnswer({ language: 'json', text: shown }, output);
const text = (shown: string, output: string) => isAnswer({ language: 'text', text: shown }, output);
const xml = (shown: string, output: string) => isAnswer({ language: 'xml', text: shown }, output);

describe('masking', () => {
  it.each([
    ['8d0b1c9e-31c6-4d0a-9a55-0f1d0f3a7c11', '<id>'],
    ['{"token":"w7D5U0-h5NXGMCDBY_57p4_mubeZL9qqgw_jAg8AqpM"}', '{"token":"<token>"}'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '<key>'],
    ['1794816490555', '<time>'],
    ['http://127.0.0.1:20510/services', 'http://127.0.0.1:<port>/services'],
    ['Elapsed: 1234 milliseconds (approximately 0 minutes).', 'Elapsed: <duration>.'],
    ['completed in 0 hh, 1 min, 2 sec, 3 millisec.', 'completed in <duration>.'],
  ])('of %s', (given, masked) => expect(mask(given)).toBe(masked));

  it.each([
    '10.9.1.1234',
    'rel_14072022_2632',
    '48 out of 48',
    '{"code":2010}',
    'closing-1',
    'numberOfFailures',
  ])('leaves %s alone', (given) => expect(mask(given)).toBe(given));
});

describe('JSON', () => {
  it('is compared as JSON, in any format', () => {
    expect(json('{ "a": [1, "b"] }', '{"a":[1,"b"]}')).toBe(true);
    expect(json('{"a":1}\n{"b":2}', '{"a":1}{"b":2}')).toBe(true);
    expect(json('{"createdAt":1700000000000}', '{"createdAt":1794816490555}')).toBe(true);
    expect(json('{"elapsedMs":5}', '{"elapsedMs":1234}')).toBe(true);
  });

  it.each([
    ['another value', '{"a":1}', '{"a":2}'],
    ['another string', '{"a":"x"}', '{"a":"xy"}'],
    ['another type', '{"a":"1"}', '{"a":1}'],
    ['a missing member', '{"a":1,"b":2}', '{"a":1}'],
    ['an additional member', '{"a":1}', '{"a":1,"b":2}'],
    ['an additional element', '[1]', '[1,2]'],
    ['another order of elements', '[1,2]', '[2,1]'],
    ['null for a time', '{"endedAt":1700000000000}', '{"endedAt":null}'],
    ['an additional document', '{"a":1}', '{"a":1}{"a":1}'],
    ['a missing document', '{"a":1}{"a":1}', '{"a":1}'],
    ['text that is no JSON', '{"a":1}', '{"a":1}oops'],
    ['an error', '{"status":"success"}', '{"status":"error"}'],
    ['no output', '{"a":1}', ''],
  ])('differs by %s', (_difference, shown, output) => expect(json(shown, output)).toBe(false));

  it('may omit members, elements, values and parts of strings', () => {
    expect(json('{"a":1,…}', '{"a":1,"b":2}')).toBe(true);
    expect(json('{"a":{"b":1, …}, …}', '{"c":3,"a":{"b":1,"d":4}}')).toBe(true);
    expect(json('{"a":…}', '{"a":{"b":2}}')).toBe(true);
    expect(json('[1, …, 4]', '[1,2,3,4]')).toBe(true);
    expect(json('[…]', '[]')).toBe(true);
    expect(json('{"a":"x…z"}', '{"a":"xyz"}')).toBe(true);
  });

  it('is compared beside what it omits', () => {
    expect(json('{"a":1,…}', '{"a":2,"b":2}')).toBe(false);
    expect(json('{"a":1,…}', '{"b":2}')).toBe(false);
    expect(json('{"a":…}', '{"b":1}')).toBe(false);
    expect(json('[1, …, 4]', '[1,2,3]')).toBe(false);
    expect(json('{"a":"x…z"}', '{"a":"xyy"}')).toBe(false);
  });
});

describe('text', () => {
  it('is compared exactly, except for blanks at the end', () => {
    expect(text('a\nb', 'a \nb\n')).toBe(true);
    expect(text('a\nb', 'a b')).toBe(false);
    expect(text('a\nb', 'a\nb\nc')).toBe(false);
    expect(text('a.c', 'abc')).toBe(false);
    expect(text('a\n…\nc', 'a\nb\nb\nc')).toBe(true);
    expect(text('a\n…\nc', 'a\nc')).toBe(true);
    expect(text('a\n…\nc', 'a\nb\nb\nd')).toBe(false);
    expect(text('a\n…\nc', 'ac')).toBe(false);
  });
});

describe('XML', () => {
  it('is compared without the blanks between elements', () => {
    expect(xml('<a>\n  <b>c</b>\n</a>', '<a><b>c</b></a>')).toBe(true);
    expect(xml('<a><b>c</b></a>', '<a><b>d</b></a>')).toBe(false);
  });
});

describe('a page', () => {
  const page = (markdown: string): Page => parsePage('page.md', markdown.replaceAll("'''", '```'));

  it('has examples with answers, with reasons why they are not run, and a server', () => {
    const { server, examples } = page(
      [
        '<!-- server: A=b -->',
        "'''sh\necho 1\n'''",
        "Answer:\n\n'''text\n1\n'''",
        "'''json\n{}\n'''",
        "<!-- not run: it needs a cluster -->\n\n'''sh\nfalse\n'''",
        "This paragraph is no introduction of an answer. The block after it shows a file.\n\n'''json\n{}\n'''",
      ].join('\n\n'),
    );
    expect(server).toBe('A=b');
    expect(examples).toEqual([
      { line: 4, script: 'echo 1', answer: { language: 'text', text: '1' } },
      { line: 20, script: 'false', notRun: 'it needs a cluster' },
    ]);
  });

  it('may be run by another test', () => {
    expect(page('<!-- server: none, tested by test/a.test.ts -->')).toEqual({
      path: 'page.md',
      testedBy: 'test/a.test.ts',
      examples: [],
    });
  });

  it('shares one shell between its examples', async () => {
    expect(await runPage(page("'''sh\nA=1\n'''\n\n'''sh\necho $A\n'''\n\n'''text\n1\n'''"))).toEqual([]);
  });

  it('fails with page, line, expected and actual answer', async () => {
    const problems = await runPage(page("# Page\n\n'''sh\necho 1\n'''\n\n'''text\n2\n'''\n"));
    expect(problems).toEqual(['page.md:4: the answer differs.\necho 1\n--- expected\n2\n--- actual\n1\n']);
  });

  it('fails at the first command that fails, with its line', async () => {
    const problems = await runPage(
      page("'''sh\necho 1\n'''\n\n'''sh\necho 2\nno-such-command\necho 3\n'''\n\n'''sh\necho 4\n'''"),
    );
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(
      /^page\.md:6: a command failed\.\n[^]*line 7: no-such-command[^]*--- output\n2\n$/,
    );
  });
});
