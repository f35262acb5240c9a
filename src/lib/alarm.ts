// One alarm for many moments: it rings at the earliest that was asked for.
import type { World } from '../runtime.ts';

export type Alarm = {
  /** Rings at this moment, or earlier where an earlier one was asked for; whoever is rung looks what is due and asks again. */
  ringAt: (at: number) => void;
  cancel: () => void;
};

export function createAlarm({ now, sleep }: Pick<World, 'now' | 'sleep'>, ring: () => void): Alarm {
  let pending: { readonly at: number; readonly over: AbortController } | undefined;

  function cancel(): void {
    pending?.over.abort();
    pending = undefined;
  }

  return {
    cancel,
    ringAt(at) {
      if (pending && pending.at <= at) return;
      cancel();
      const over = new AbortController();
      pending = { at, over };
      sleep(Math.max(0, at - now()), over.signal).then(
        () => {
          pending = undefined;
          ring();
        },
        () => undefined,
      );
    },
  };
}
