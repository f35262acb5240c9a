// What the tests of deliveries share.
import { expect } from 'vitest';
import type { Hooks } from '../kit/hooks.ts';

/** Looks for the delivery of a webhook that has had just one. */
export const onlyDeliveryOf = (hooks: () => Hooks) => async (id: string) => {
  const { deliveries } = await hooks().deliveriesOf(id);
  expect(deliveries).toHaveLength(1);
  return deliveries[0];
};
