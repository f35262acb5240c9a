// Form fields that hold JSON.
import { isDeeperThan } from '../lib/json.ts';
import { type Control, type Field, type Parsed, optional } from './fields.ts';

/** A JSON object, as text. */
export function jsonObject(description: string): Field<Readonly<Record<string, unknown>> | undefined> {
  return optional(description, { kind: 'text', lines: true, holds: 'object' }, parseJsonObject);
}

/** A JSON object that is kept as the text it came as. */
export function jsonText(description: string, mostBytes: number): Field<string | undefined> {
  const control: Control = { kind: 'text', maxLength: mostBytes, lines: true, holds: 'object' };
  return optional(description, control, (raw) => {
    if (Buffer.byteLength(raw) > mostBytes) return { problem: `must be at most ${mostBytes} bytes.` };
    const parsed = parseJsonObject(raw);
    // A copy, so that what is kept does not keep the whole form it was part of.
    return 'problem' in parsed ? parsed : { value: Buffer.from(raw.trim()).toString() };
  });
}

/** What is read must also be written again, by means that go down level by level. */
const maxNesting = 64;

function parseJsonObject(raw: string): Parsed<Readonly<Record<string, unknown>>> {
  try {
    const value: unknown = JSON.parse(raw);
    if (isDeeperThan(value, maxNesting))
      return { problem: `must not be nested more than ${maxNesting} levels deep.` };
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { value: value as Record<string, unknown> };
    }
  } catch {
    // Refused below.
  }
  return { problem: 'must be a JSON object.' };
}

/** Something named by `{"id": "…"}`. */
export function reference(description: string): Field<string | undefined> {
  const problem = 'must be a JSON object of the form {"id": "…"}.';
  return optional(description, { kind: 'text', lines: true, holds: 'reference' }, (raw) => {
    const parsed = parseJsonObject(raw);
    const id = 'value' in parsed ? parsed.value.id : undefined;
    return typeof id === 'string' && id !== '' ? { value: id } : { problem };
  });
}
