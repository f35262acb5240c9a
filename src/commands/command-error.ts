// An error of a command, with everything that a person must correct, and the text of an error for the terminal.
import { truncate } from '../lib/text.ts';

export class CommandError extends Error {
  readonly problems: readonly string[];

  constructor(message: string, problems: readonly string[] = []) {
    super(message);
    this.name = 'CommandError';
    this.problems = problems;
  }
}

const maxErrorLength = 2000;

/** Errors quote the answers of other servers: their control characters could change what the terminal shows. */
export function formatError(error: Error): string {
  const problems = error instanceof CommandError ? error.problems : [];
  const lines = [error.message, ...problems.map((problem) => `  ${problem}`)];
  const text = lines.map((line) => line.replaceAll(/\p{Cc}/gu, '\uFFFD')).join('\n');
  return text.length > maxErrorLength ? `${truncate(text, maxErrorLength)}…` : text;
}
