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

/** Control characters, and those that change the direction of writing: they could change what a terminal shows. */
const hidden = /[\p{Cc}\p{Cf}]/gu;

/** Escapes them in JSON text, whose line breaks are those of its format. */
export function escapeHidden(json: string): string {
  const escape = (character: string) =>
    character.replace(/[^\n]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return json.replaceAll(hidden, escape);
}

/** Errors quote the answers of other servers. */
export function formatError(error: Error): string {
  const problems = error instanceof CommandError ? error.problems : [];
  const lines = [error.message, ...problems.map((problem) => `  ${problem}`)];
  const text = lines.map((line) => line.replaceAll(hidden, '\uFFFD')).join('\n');
  return text.length > maxErrorLength ? `${truncate(text, maxErrorLength)}…` : text;
}
