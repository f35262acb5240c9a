// Closes resources while an upgrade job runs.
import type { Operation } from '../rest/operation.ts';
import type { Resource } from '../rest/resource.ts';

export function closeBeneathDuringJob<S>(open: Resource<S>): Resource<S> {
  return { ...closeDuringJob(open), duringJob: 'open' };
}

function closeDuringJob<S>(open: Resource<S>): Resource<S> {
  const closeAll = <T>(entries: Readonly<Record<string, T>>, close: (entry: T) => T) =>
    Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, close(entry)]));
  const closeOperation = (operation: Operation<S>) => ({ ...operation, duringJob: 'closed' as const });
  return {
    ...open,
    duringJob: 'closed',
    resources: closeAll(open.resources, closeDuringJob<S>),
    onPost: open.onPost && closeOperation(open.onPost),
    operations: closeAll(open.operations, closeOperation),
    items: open.items.map((entry) => ({ ...entry, resource: closeDuringJob(entry.resource) })),
  };
}
