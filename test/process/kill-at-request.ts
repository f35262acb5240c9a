// Kills a process at a request that it sends to the API server.
import type { Cluster } from '../kubernetes/cluster.ts';

/** The nth request of this method to a path, which the proxy forwards or not. */
export type RequestToKillAt = { method: string; path: RegExp; nth: number; isForwarded: boolean };

/** `dead` resolves when the process is killed. `cancel` lets it live. */
export function killAtRequest(
  { faults }: Cluster,
  { method, path, nth, isForwarded }: RequestToKillAt,
  kill: () => Promise<void>,
): { dead: Promise<void>; cancel: () => void } {
  let cancel: () => void = () => undefined;
  const dead = new Promise<void>((resolve) => {
    let count = 0;
    cancel = faults.inject({
      method,
      path,
      times: Infinity,
      act: async () => {
        count += 1;
        if (count !== nth) return;
        cancel();
        await kill();
        resolve();
        if (!isForwarded) throw new Error('the client is gone');
      },
    });
  });
  return { dead, cancel };
}
