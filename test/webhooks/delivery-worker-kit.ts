// Finds deliveries for the tests of the delivery worker.
import { expect } from 'vitest';
import type { Hooks } from '../kit/hooks.ts';

/** Returns the only delivery of a webhook. */
export const onlyDeliveryOf = (hooks: () => Hooks) => async (id: string) => {
  const { deliveries } = await hooks().deliveriesOf(id);
  expect(deliveries).toHaveLength(1);
  return deliveries[0];
};
