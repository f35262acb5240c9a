// Tests of the ids of the real runtime.
import { expect, it } from 'vitest';
import { realRuntime, timeOfId } from '../../src/lib/runtime.ts';

it('ids are UUIDs of version 7, differ, and contain the time they are made for', () => {
  const at = Date.UTC(2026, 10, 19);
  const ids = Array.from({ length: 1_000 }, () => realRuntime.newId(at));
  expect(new Set(ids).size).toBe(1_000);
  for (const id of ids) expect(id).toMatch(/^01a1f11a-6000-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect(new Set(ids.map(timeOfId))).toEqual(new Set([at]));
  const before = Date.now();
  const id = realRuntime.newId();
  expect(timeOfId(id)).toBeGreaterThanOrEqual(before);
  for (const other of ['id-1', '', `${id}0`, id.replace(/-7/, '-4')]) expect(timeOfId(other)).toBeUndefined();
});
