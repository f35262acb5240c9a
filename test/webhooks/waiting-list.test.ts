// Compares the list of waiting deliveries with a sorted array.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Delivery } from '../../src/webhooks/queue/delivery.ts';
import { WaitingList } from '../../src/webhooks/queue/memory/waiting-list.ts';
import { delivery } from '../store/deliveries.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 500);

it('returns the delivery that waits longest, and equal ones in the order in which they were added', () => {
  // A number adds a delivery that waits since then; 'first' removes the first, and 'some' any other.
  const act = fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 5 }) },
    { weight: 2, arbitrary: fc.constant('first' as const) },
    { weight: 1, arbitrary: fc.record({ some: fc.nat() }) },
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
      const list = new WaitingList();
      let model: Delivery[] = [];
      for (const [number, one] of acts.entries()) {
        if (typeof one === 'number') {
          const added = delivery(String(number), one);
          list.add(added);
          // Sorting is stable.
          model = [...model, added].sort((a, b) => a.createdAt - b.createdAt);
        } else {
          const removed = model[one === 'first' ? 0 : one.some % Math.max(1, model.length)];
          list.delete(removed?.id ?? 'none');
          model = model.filter((other) => other !== removed);
        }
        expect(list.first()).toBe(model[0]);
      }
    }),
    { numRuns: runs },
  );
});
