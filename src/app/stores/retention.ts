// How much finished data the stores keep.
import type { DeliveryRetention } from '../../webhooks/queue/delivery-queue.ts';

/** How much finished data a store keeps. It removes the rest in the background. */
export type Retention = {
  readonly deliveries: DeliveryRetention;
  /** Jobs before the newest that keep their messages. */
  readonly jobs: number;
};
