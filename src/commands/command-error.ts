// An error of a command, with everything that a person must correct.
export class CommandError extends Error {
  readonly problems: readonly string[];

  constructor(message: string, problems: readonly string[] = []) {
    super(message);
    this.name = 'CommandError';
    this.problems = problems;
  }
}
