// Compares the heap with a sorted array.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createHeap } from '../../src/webhooks/queue/memory/heap.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 500);

it('is empty at first, and ignores pop when it is empty', () => {
  const heap = createHeap<string>();
  expect(heap.peek()).toBeUndefined();
  expect(heap.size()).toBe(0);
  heap.pop();
  expect(heap.peek()).toBeUndefined();
  expect(heap.size()).toBe(0);
  heap.push(1, 'a');
  expect(heap.peek()).toMatchObject({ at: 1, value: 'a' });
  expect(heap.size()).toBe(1);
  heap.pop();
  expect(heap.peek()).toBeUndefined();
});

it('returns the smallest entry first, and equal entries in the order they were added', () => {
  // A number is pushed, null pops. The few different numbers make many entries equal; 1e13 has the size of a timestamp.
  const at = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(-Infinity, 0.5, 1e13, Infinity));
  const act = fc.oneof({ weight: 3, arbitrary: at }, { weight: 2, arbitrary: fc.constant(null) });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 120 }), (acts) => {
      const heap = createHeap<number>();
      let model: { at: number; value: number }[] = [];
      for (const [value, at] of [...acts, ...acts.map(() => null)].entries()) {
        if (at === null) {
          heap.pop();
          model = model.slice(1);
        } else {
          heap.push(at, value);
          // Sorting is stable: equal entries stay in the order they were added.
          model = [...model, { at, value }].sort((a, b) => (a.at === b.at ? 0 : a.at - b.at));
        }
        const head = heap.peek();
        expect(head && { at: head.at, value: head.value }).toEqual(model[0]);
        expect(heap.size()).toBe(model.length);
      }
      expect(heap.peek()).toBeUndefined();
    }),
    { numRuns: runs },
  );
}, 300_000);

it('sorts 20,000 entries', () => {
  const heap = createHeap<number>();
  const numbers = Array.from({ length: 20_000 }, (_, index) => (index * 7919) % 10_007);
  for (const [index, at] of numbers.entries()) heap.push(at, index);
  const sorted = numbers.map((at, value) => ({ at, value })).sort((a, b) => a.at - b.at);
  const firstWrong = sorted.find(({ at, value }) => {
    const head = heap.peek();
    heap.pop();
    return head?.at !== at || head.value !== value;
  });
  expect(firstWrong).toBeUndefined();
});
