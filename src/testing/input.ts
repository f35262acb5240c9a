// Reads the JSON bodies and queries of the control API. Unknown names are refused: a typing error in a test must
// not pass unnoticed.
import * as z from 'zod';
import { type Problem, ServiceError, formatProblem, invalid } from '../lib/errors.ts';
import { dayMs } from '../lib/runtime.ts';

/** The longest advance: ten years. Each takes about half a second. */
export const maxAdvanceMs = 3_653 * dayMs;

/** The last moment that a Date can hold. */
export const maxDate = 8_640_000_000_000_000;

const integerRule = (from: number, to: number) => `must be an integer from ${from} to ${to}`;
const integer = (from: number, to: number) => {
  const rule = integerRule(from, to);
  return z.int(rule).min(from, rule).max(to, rule);
};
const integerText = (from: number, to: number) => {
  const rule = integerRule(from, to);
  return z
    .string(rule)
    .regex(/^[0-9]{1,9}$/, rule)
    .transform(Number)
    .refine((value) => value >= from && value <= to, rule);
};
const text = z.string('must be given once').max(4096, 'must have at most 4096 characters');

export const clockInput = z
  .strictObject({
    frozen: z.boolean('must be true or false').optional(),
    now: integer(0, maxDate).optional(),
    advanceMs: integer(0, maxAdvanceMs).optional(),
  })
  .check(({ value, issues }) => {
    const refuse = (message: string) => issues.push({ code: 'custom', input: value, message });
    if (Object.values(value).every((part) => part === undefined))
      refuse('must name frozen, now or advanceMs');
    if (value.now !== undefined && value.advanceMs !== undefined)
      refuse('must not name both now and advanceMs');
  });

export const resetInput = z.strictObject({}).optional();

export const ruleQuery = z.strictObject({ id: text.optional(), f: text.optional() });

export const journalQuery = z.strictObject({
  route: text.optional(),
  status: integerText(100, 599).optional(),
  soapOperation: text.optional(),
  start: integerText(0, 999_999_999).default(0),
  num: integerText(1, 1000).default(100),
  f: text.optional(),
});

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

export function parseJson(body: string): unknown {
  if (body.trim() === '') return undefined;
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new ServiceError('invalid', 'The body must be JSON.', {
      problems: [{ field: 'body', message: `${(error as Error).message}.` }],
    });
  }
}
