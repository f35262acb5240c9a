// Tests the text that a command writes to the terminal when it fails.
import { expect, it } from 'vitest';
import { CommandError, formatError } from '../../src/commands/command-error.ts';

it('has each problem on a line of its own', () => {
  expect(formatError(new CommandError('Two problems:', ['one', 'two']))).toBe('Two problems:\n  one\n  two');
});

it('has no control characters of a remote server', () => {
  const error = new CommandError('A fault: \u001B]0;x\u0007\u001B[2J\r\nDone.', ['\u009B2J\u0000\u202E é 🗺']);
  expect(formatError(error)).toBe(
    'A fault: \uFFFD]0;x\uFFFD\uFFFD[2J\uFFFD\uFFFDDone.\n  \uFFFD2J\uFFFD\uFFFD é 🗺',
  );
});

it('has at most 2,000 characters', () => {
  expect(formatError(new Error('x'.repeat(2000)))).toBe('x'.repeat(2000));
  const problems = Array.from({ length: 10_000 }, () => 'a problem');
  expect(formatError(new CommandError('x'.repeat(1990), problems))).toBe(`${'x'.repeat(1990)}\n  a probl…`);
});
