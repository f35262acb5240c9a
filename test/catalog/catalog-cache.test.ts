// The cache of texts that are rendered from the catalog.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { CatalogCache } from '../../src/catalog/catalog-cache.ts';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { defaultStoreOptions } from '../kit/store.ts';

it('renders a text once for a caller that asks while it is rendered', async () => {
  let renders = 0;
  function* texts() {
    renders += 1;
    for (let part = 0; part < 20; part += 1) yield 'x'.repeat(64 * 1024);
  }
  const cache = new CatalogCache(createMemoryStore(defaultStoreOptions), {
    yieldToEventLoop: () => nextTurn(),
  });
  const first = cache.content('key', texts);
  await nextTurn();
  const second = cache.content('key', texts);
  expect(await second).toBe(await first);
  expect(renders).toBe(1);
});
