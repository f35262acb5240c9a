// Reads the JSON bodies and queries of the control API. Unknown names are refused: a typing error in a test must
// not pass unnoticed.
import * as z from 'zod';
import { type Problem, formatProblem, invalid } from '../lib/errors.ts';
import { dayMs } from '../lib/runtime.ts';

/** The longest advance: ten years. Each takes about half a second. */
export const maxAdvanceMs = 3_653 * dayMs;

/** The last moment that a Date can hold. */
export const maxDate = 8_640_000_000_000_000;

export function integer(from: number, to: number) {
  const rule = `must be an integer from ${from} to ${to}`;
  return z.int(rule).min(from, rule).max(to, rule);
}

/** Throws an error that names every problem. */
export function parseInput<T>(schema: z.ZodType<T>, given: unknown): T {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.flatMap(problemsOf);
  // A number may break several rules of its field, which have the same text.
  throw invalid([...new Map(problems.map((problem) => [formatProblem(problem), problem])).values()]);
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  const path = issue.path.join('.');
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((name) => ({ field: at(name), message: 'is not known here.' }));
  if (issue.code === 'invalid_type' && issue.expected === 'object')
    return [{ field: path === '' ? 'body' : path, message: 'must be a JSON object.' }];
  return [{ field: path === '' ? 'body' : path, message: `${issue.message}.` }];
}
