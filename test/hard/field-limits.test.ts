// The limits of every single field of every operation, at the limit and just past it, as the directory itself tells them.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Entry, walk } from '../../src/rest/resource.ts';
import type { Control, Field } from '../../src/rest/fields.ts';
import { maxPayloadBytes } from '../../src/webhooks/event.ts';
import { type Target, idsIn, startTarget } from './fuzz-session.ts';

let target: Target;
let ids: Record<string, string>;
beforeAll(async () => {
  target = await startTarget({});
  ids = await idsIn(target);
});
afterAll(() => target.close());

/** Where any letters will not do, something as long. */
const patterns: Record<string, (length: number) => string> = {
  hookUrl: (length) => `https://hooks.example/${'x'.repeat(length - 'https://hooks.example/'.length)}`,
  url: (length) => `https://hooks.example/${'x'.repeat(length - 'https://hooks.example/'.length)}`,
  payload: (length) => `{"a":"${'x'.repeat(length - '{"a":""}'.length)}"}`,
  // So many types, and white space to make it so long.
  changeTypes: (length) => `A,B${' '.repeat(length - 'A,B'.length)}`,
};

/** A key is as long as it is: its bytes are what is limited. */
const otherwise: Record<string, { good: string[]; bad: string[] }> = {
  signatureKey: { good: [key(24), key(64)], bad: [key(23), key(65)] },
};

function key(bytes: number): string {
  return `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`;
}

/** Values at the limits of a field, and just past them. */
function bordersOf(name: string, control: Control): { good: string[]; bad: string[] } | undefined {
  const own = otherwise[name];
  if (own) return own;
  if (control.kind === 'number') {
    const { from, to } = control;
    return { good: [from, to].map(String), bad: [from - 1, to + 1].map(String) };
  }
  if (control.kind !== 'text' || control.maxLength === undefined) return undefined;
  const { minLength = 1, maxLength } = control;
  const ofLength = patterns[name] ?? ((length: number) => 'x'.repeat(length));
  const least =
    minLength > 1 ? { good: [ofLength(minLength)], bad: [ofLength(minLength - 1)] } : { good: [], bad: [] };
  return { good: [...least.good, ofLength(maxLength)], bad: [...least.bad, ofLength(maxLength + 1)] };
}

/** What is said against a field; the others are missing. */
async function problemsOf(path: string, entry: Entry, name: string, value: string): Promise<string[]> {
  const { token } = target;
  const isPost = entry.operation !== undefined;
  const headers = { authorization: `Bearer ${token('administrator')}` };
  const answer = isPost
    ? await target.post(path, { [name]: value }, headers)
    : await target.get(`${path}?${new URLSearchParams({ [name]: value }).toString()}`, headers);
  if (answer.statusCode < 300) return [];
  const { error } = answer.json<{ error: { details: string[] } }>();
  // A name that is good may name nothing.
  return error.details.filter((detail) => detail.startsWith(`${name}: `) && !detail.includes('there is no '));
}

it('are held by every field that has them', async () => {
  let tried = 0;
  for (const [prefix, root] of Object.entries(target.app.trees)) {
    for (const entry of walk(root)) {
      const route = entry.route.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
        const known = { folder: 'Empty', service: 'World.MapServer', ...ids }[name] ?? '';
        return known.split('¦', 1)[0] ?? '';
      });
      // A service of the root is as good as one of a folder, and the folder above has none.
      const path = `/${prefix}/${route}`.replace('/Empty/World.MapServer', '/World.MapServer');
      const { fields } = entry.operation ?? entry.resource;
      for (const [name, field] of Object.entries(fields as Record<string, Field<unknown>>)) {
        const borders = bordersOf(name, field.control);
        if (!borders) continue;
        for (const value of borders.good) {
          const said = await problemsOf(path, entry, name, value);
          expect(said, `${path} ${name}=${value.slice(0, 40)} (${value.length})`).toEqual([]);
        }
        for (const value of borders.bad) {
          const said = await problemsOf(path, entry, name, value);
          expect(said, `${path} ${name}=${value.slice(0, 40)} (${value.length})`).toHaveLength(1);
        }
        tried += 1;
      }
    }
  }
  expect(tried).toBeGreaterThan(40);
});

it('are told of the types of events and of what is published', async () => {
  const headers = { authorization: `Bearer ${target.token('administrator')}` };
  const create = (count: number) => {
    const changeTypes = JSON.stringify(Array.from({ length: count }, (_, index) => `T${index}`));
    return target.post('/admin/services/webhooks/create', { changeTypes }, headers);
  };
  expect((await create(100)).body).not.toContain('changeTypes: ');
  expect((await create(101)).body).toContain('changeTypes: must be');
  // Bytes, not characters.
  const publish = (bytes: number) => {
    const payload = `{"a":"${'é'.repeat((bytes - '{"a":""}'.length) / 2)}"}`;
    return target.post('/admin/services/webhooks/publish', { changeType: 'Tested', payload }, headers);
  };
  expect((await publish(maxPayloadBytes)).statusCode).toBe(200);
  expect((await publish(maxPayloadBytes + 2)).statusCode).toBe(400);
});
