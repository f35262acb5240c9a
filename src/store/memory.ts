// The default store: keeps everything in the memory of this process and loses it when the process ends.
import { type Act, clear, createChanges, createTransaction } from './changes.ts';
import { createCopy } from './copy.ts';
import { type MemoryQueue, createMemoryQueue } from './memory-queue.ts';
import type { Store } from './store.ts';
import { LostClaim, type Queue, type Reader } from './transaction.ts';

const self = 'memory';

export function createMemoryStore(): Store {
  const copy = createCopy();
  const queues = new Map<string, unknown>();

  function queueOf<T>(queue: Queue<T>): MemoryQueue<T> {
    const known = queues.get(queue.name) as MemoryQueue<T> | undefined;
    const found = known ?? createMemoryQueue(queue);
    queues.set(queue.name, found);
    return found;
  }

  const reader: Reader = {
    ...copy,
    waiting: (queue) => queueOf(queue).waiting(),
    waitingBytes: (queue) => queueOf(queue).waitingBytes(),
    isAlive: (process) => process === self,
  };

  // Updates run one after another, so all of them reuse one transaction. Creating one per update costs measurable time.
  const changes = createChanges();
  const transaction = createTransaction(reader, changes, (queue, claimed) => {
    if (!queueOf(queue).holds(claimed)) throw new LostClaim(queue.keyOf(claimed));
  });

  return {
    ...reader,
    self,
    update: (change) =>
      new Promise((resolve) => {
        try {
          const result = change(transaction);
          copy.apply(changes);
          for (const act of changes.acts) {
            perform(queueOf(act.queue), act);
            copy.touch(act.queue.name);
          }
          resolve(result);
        } finally {
          clear(changes);
        }
        copy.notify();
      }),
    claim: (queue, claim) => Promise.resolve(queueOf(queue).claim(claim)),
    find: (queue, key) => Promise.resolve(queueOf(queue).find(key)),
    oldest: (queue) => Promise.resolve(queueOf(queue).oldest()),
    page: (queue, owner, start, num) => Promise.resolve(queueOf(queue).page(owner, start, num)),
    fetch: (archive, key) => Promise.resolve(copy.get(archive, key)),
    refresh: () => Promise.resolve(),
    version: copy.version,
    onUpdate: copy.onUpdate,
    problems: () => [],
    close: () => Promise.resolve(),
  };
}

function perform(queue: MemoryQueue<never>, act: Act): void {
  if (act.kind === 'enqueue') queue.put(act.row);
  else if (act.kind === 'settle') queue.settle(act.claimed, act.row);
  else if (act.kind === 'amend') queue.amend(act.owner, act.change);
  else if (act.kind === 'thin') queue.thin(act.owner, act.keep);
  else if (act.kind === 'trim') queue.trim(act.owner, act.keep);
  else queue.drop(act.owner);
}
