// Tests the limits of every field of every operation, at the limit and just past it, and values of a wrong type. The limits
// come from the schemas of the fields.
import { beforeAll, expect, it } from 'vitest';
import { type Field, choicesOf, describeField } from '../../src/rest/fields.ts';
import { type Entry, walk } from '../../src/rest/tree.ts';
import { perFile } from '../kit/cleanup.ts';
import { idsIn, startTarget } from './fuzz-session.ts';

const target = perFile(() => startTarget({}));
let ids: Record<string, string>;
beforeAll(async () => {
  ids = await idsIn(target);
});

/** Valid values of a given length, for fields that do not accept arbitrary letters. */
const patterns: Record<string, (length: number) => string> = {
  hookUrl: (length) => `https://hooks.example/${'x'.repeat(length - 'https://hooks.example/'.length)}`,
  url: (length) => `https://hooks.example/${'x'.repeat(length - 'https://hooks.example/'.length)}`,
  serverUrl: (length) => `http://localhost:8080/${'x'.repeat(length - 'http://localhost:8080/'.length)}`,
  planDigest: (length) => 'a'.repeat(length),
  // Other fields have the text of x, which the audit trail shows.
  password: (length) => 'p'.repeat(length),
  newPassword: (length) => 'n'.repeat(length),
  payload: (length) => `{"a":"${'x'.repeat(length - '{"a":""}'.length)}"}`,
  // White space extends the value to the given length.
  changeTypes: (length) => `A,B${' '.repeat(length - 'A,B'.length)}`,
  state: (length) => `failed,${' '.repeat(length - 'failed,missed'.length)}missed`,
  status: (length) => 'none'.padEnd(length, 'e'),
  windows: (length) => '[]'.padEnd(length),
};

/** The limits of a signature key are in bytes, not in characters. */
const exceptions: Record<string, { good: string[]; bad: string[] }> = {
  // A start must be in the next 90 days.
  startAt: { good: [], bad: ['-1', '0', '999999999999999', '1000000000000000'] },
  signatureKey: { good: [key(24), key(64)], bad: [key(23), key(65)] },
};

function key(bytes: number): string {
  return `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`;
}

/** JSON of another type. */
function wrongJson(type: string | readonly string[]): string {
  if (type === 'array') return '{}';
  return type === 'object' ? '[]' : '1';
}

/** Values at the limits of a field, just past them, and of a wrong type. */
function boundariesOf(name: string, field: Field): { good: string[]; bad: string[] } {
  const exception = exceptions[name];
  if (exception) return exception;
  const description = describeField(field);
  if (choicesOf(description)) return { good: [], bad: ['nonsense'] };
  const schema: typeof description.schema & { contentSchema?: { type: string | readonly string[] } } =
    description.schema;
  if (schema.type === 'integer') {
    const { minimum: from = NaN, maximum: to = NaN } = schema;
    return { good: [from, to].map(String), bad: [from - 1, to + 1].map(String) };
  }
  const { minLength = 1, maxLength, contentSchema } = schema;
  const ofLength = patterns[name] ?? ((length: number) => 'x'.repeat(length));
  const lengths = (limit: number | undefined) => (limit === undefined ? [] : [ofLength(limit)]);
  const least = minLength > 1 ? minLength : undefined;
  const wrongType = contentSchema ? [wrongJson(contentSchema.type)] : [];
  return {
    good: [...lengths(least), ...lengths(maxLength)],
    bad: [...lengths(least && least - 1), ...lengths(maxLength && maxLength + 1), ...wrongType],
  };
}

/** The problems that the server reports for the field. The other fields are missing. */
async function problemsOf(path: string, entry: Entry, name: string, value: string): Promise<string[]> {
  const { token } = target;
  const isPost = entry.operation !== undefined;
  const headers = { authorization: `Bearer ${token('administrator')}` };
  const answer = isPost
    ? await target.post(path, { [name]: value }, headers)
    : await target.get(`${path}?${new URLSearchParams({ [name]: value }).toString()}`, headers);
  if (answer.statusCode < 300) return [];
  const { error } = answer.json<{ error: { details: string[] } }>();
  // A valid name need not exist, and some limits depend on another field.
  const isOther = (detail: string) => /there is no |days before to\.$/.test(detail);
  return error.details.filter((detail) => detail.startsWith(`${name}: `) && !isOther(detail));
}

it('every field enforces its limits', async () => {
  let tested = 0;
  for (const [prefix, root] of Object.entries(target.app.trees)) {
    for (const entry of walk(root)) {
      // A webhook has the same operations beneath its service.
      if (entry.route.includes('{service}/webhooks/{webhook}')) continue;
      const route = entry.route.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
        const known = { folder: 'Empty', service: 'World.MapServer', ...ids }[name] ?? '';
        return known.split('¦', 1)[0] ?? '';
      });
      // The folder Empty has no services, and takes no other folderName, so the test uses the root.
      const path = `/${prefix}/${route}`.replace(/\/Empty\/(World.MapServer|createService)/, '/$1');
      const { fields } = entry.operation ?? entry.resource;
      for (const [name, field] of Object.entries(fields)) {
        const { good, bad } = boundariesOf(name, field);
        for (const value of [...good, ...bad]) {
          const problems = await problemsOf(path, entry, name, value);
          const label = `${path} ${name}=${value.slice(0, 40)} (${value.length})`;
          expect(problems, label).toHaveLength(good.includes(value) ? 0 : 1);
        }
        tested += bad.length;
      }
    }
  }
  expect(tested).toBeGreaterThan(200);
});
