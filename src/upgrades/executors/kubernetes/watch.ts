// Watches objects: the API server sends each change as it happens, so that it need not be asked again.
import { type KubeConfig, Watch } from '@kubernetes/client-node';
import { ClusterError } from './client.ts';

/** The server ends a watch after this time, so that a connection that died unnoticed is replaced. */
export const watchSeconds = 60;

type WatchObjects = (
  path: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
  onEvent: (type: string, object: unknown) => void,
) => Promise<void>;

/** The watch resolves when the server ends it or the signal is aborted, and rejects with a ClusterError if it fails. */
export function createWatch(config: KubeConfig): WatchObjects {
  const watch = new Watch(config);
  return (path, query, signal, onEvent) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      const onAnyEvent = (type: string, object: unknown) => {
        if (signal.aborted) return;
        // For example 410: the server no longer has the changes since the given version.
        if (type === 'ERROR')
          reject(new ClusterError((object as { code?: number }).code, 'the watch has ended'));
        else onEvent(type, object);
      };
      const onEnd = (error: unknown) => (isError(error) ? reject(toClusterError(error)) : resolve());
      watch.watch(path, { ...query, timeoutSeconds: watchSeconds }, onAnyEvent, onEnd).then((request) => {
        if (signal.aborted) request.abort();
        else signal.addEventListener('abort', () => request.abort(), { once: true });
      }, reject);
    });
}

function isError(error: unknown): error is Error & { statusCode?: number } {
  return error instanceof Error;
}

function toClusterError({ statusCode, message }: Error & { statusCode?: number }): ClusterError {
  return new ClusterError(statusCode, message);
}
