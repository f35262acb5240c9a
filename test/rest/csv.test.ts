// Rows of CSV files.
import { expect, it } from 'vitest';
import { formatRow } from '../../src/rest/csv.ts';

it.each<[string, string | number | null, string]>([
  ['a text', 'a b', 'a b'],
  ['nothing', null, ''],
  ['a number', -1.5, '-1.5'],
  ['a comma', 'a,b', '"a,b"'],
  ['a semicolon', 'a;b', '"a;b"'],
  ['a formula after a semicolon', 'a;=1+1;-b', `"a;'=1+1;'-b"`],
  ['a formula after a semicolon and quotation marks', 'a;"=1+1"', `"a;""'=1+1"""`],
  ['quotation marks', 'say "a"', '"say ""a"""'],
  ['a line break', 'a\nb', '"a\nb"'],
  ['a carriage return', 'a\rb', '"a\rb"'],
  ['text that begins with =', '=1+1', "'=1+1"],
  ['text that begins with +', '+1', "'+1"],
  ['text that begins with -', '-1', "'-1"],
  ['text that begins with @', '@a', "'@a"],
  ['text that begins with a tab', '\ta', "'\ta"],
  ['text that begins with a carriage return', '\ra', '"\'\ra"'],
])('shows %s', (_what, value, text) => {
  expect(formatRow([value, 'z'])).toBe(`${text},z\r\n`);
});
