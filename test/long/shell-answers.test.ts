// Tests the comparison of shown answers with real ones: what is masked, what `…` omits, and that a wrong answer is
// found.
import { expect, it } from 'vitest';
import { isAnswer, mask } from '../documents/answers.ts';
import { parsePage } from '../documents/pages.ts';
import { runPage } from '../documents/run.ts';

it.each([
  ['8d0b1c9e-31c6-4d0a-9a55-0f1d0f3a7c11', '<id>'],
  ['{"token":"w7D5U0-h5NXGMCDBY_57p4_mubeZL9qqgw_jAg8AqpM"}', '{"token":"<token>"}'],
  ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '<key>'],
  ['http://127.0.0.1:20510/services at 1794816490555', 'http://127.0.0.1:<port>/services at <time>'],
  ['Elapsed: 1234 milliseconds (approximately 0 minutes).', 'Elapsed: <duration>.'],
  ['completed in 0 hh, 1 min, 2 sec, 3 millisec.', 'completed in <duration>.'],
  ['10.9.1.1234 rel_14072022_2632 48 out of 48 {"code":2010}', undefined],
])('%s is masked where it differs in each run', (given, masked) => expect(mask(given)).toBe(masked ?? given));

it.each([
  ['json', '{ "a": [1, "b"] }', '{"a":[1,"b"]}', '{"a":["b",1]}'],
  ['json', '{"a":1}\n{"b":2}', '{"a":1}{"b":2}', '{"a":1}'],
  ['json', '{"a":1}', '{"a":1}', '{"a":1,"b":2}'],
  ['json', '{"a":"1"}', '{"a":"1"}', '{"a":1}'],
  ['json', '{"createdAt":1700000000000}', '{"createdAt":1794816490555}', '{"createdAt":null}'],
  ['json', '{"a":1,…}', '{"a":1,"b":2}', '{"a":2,"b":2}'],
  ['json', '{"a":…}', '{"a":{"b":2}}', '{"b":1}'],
  ['json', '[1, …, 4]', '[1,2,3,4]', '[1,2,3]'],
  ['json', '{"a":"x…z"}', '{"a":"xyz"}', '{"a":"xyy"}'],
  ['json', '{"a":1}', '{"a":1}', '{"a":1}oops'],
  ['text', 'a\nb', 'a \nb\n', 'a\nb\nc'],
  ['text', 'a\n…\nc', 'a\nb\nb\nc', 'a\nb\nb\nd'],
  ['text', 'a.c', 'a.c', 'abc'],
  ['xml', '<a>\n  <b>c</b>\n</a>', '<a><b>c</b></a>', '<a><b>d</b></a>'],
] as const)('%s %s is equal to %s and not to %s', (language, text, equal, other) => {
  expect(isAnswer({ language, text }, equal)).toBe(true);
  expect(isAnswer({ language, text }, other)).toBe(false);
});

const page = (markdown: string) => parsePage('page.md', markdown.replaceAll("'''", '```'));

it('a page has examples with answers, with reasons why they are not run, and a server', () => {
  const parts = [
    '<!-- server: A=b -->',
    "'''sh\necho 1\n'''",
    "Answer:\n\n'''text\n1\n'''",
    "<!-- not run: it needs a cluster -->\n\n'''sh\nfalse\n'''",
    "This paragraph is no introduction of an answer. The block after it shows a file.\n\n'''json\n{}\n'''",
  ];
  expect(page(parts.join('\n\n'))).toMatchObject({
    server: 'A=b',
    examples: [
      { line: 4, script: 'echo 1', answer: { language: 'text', text: '1' } },
      { line: 16, script: 'false', notRun: 'it needs a cluster' },
    ],
  });
  expect(page('<!-- server: none, tested by test/a.test.ts -->').testedBy).toBe('test/a.test.ts');
});

it('a page shares one shell between its examples, and fails at the first difference or failing command', async () => {
  const shared = "'''sh\nA=1\n'''\n\n'''sh\necho $A\n'''\n\n'''text\n";
  expect(await runPage(page(`${shared}1\n'''`))).toEqual([]);
  expect(await runPage(page(`${shared}2\n'''`))).toEqual([
    'page.md:6: the answer differs.\necho $A\n--- expected\n2\n--- actual\n1\n',
  ]);
  const failing = await runPage(page("'''sh\necho 2\nno-such-command\necho 3\n'''\n\n'''sh\necho 4\n'''"));
  expect(failing).toEqual([
    expect.stringMatching(/^page\.md:2: a command failed\.\n[^]*line 3: no-such-command[^]*--- output\n2\n$/),
  ]);
});
