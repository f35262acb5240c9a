// Tests which webhooks get an event, and that finding them does not read all webhooks each time.
import { expect, it } from 'vitest';
import type { Reader } from '../../src/store/state.ts';
import { Subscriptions } from '../../src/webhooks/queue/subscriptions.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { webhook } from '../store/definitions.ts';
import { openMemory } from '../store/backends.ts';

const roads = 'Maps/Roads.MapServer';
const all = [
  webhook('all'),
  webhook('all of roads', { service: roads }),
  webhook('several', { changeTypes: ['Tested', 'Other'] }),
  webhook('tested roads', { changeTypes: ['Tested'], service: roads }),
  webhook('other roads', { changeTypes: ['Other'], service: roads }),
  webhook('tested ships', { changeTypes: ['Tested'], service: 'Maps/Ships.MapServer' }),
];

it('finds the webhooks of the type or of every type, and of the service or of every service', async () => {
  const store = await openMemory();
  await store.update((transaction) => {
    for (const one of all) transaction.put(webhooks, one);
  });
  const subscriptions = new Subscriptions();
  let reads = 0;
  const counting = (reader: Reader): Reader => ({
    ...reader,
    all: (table) => {
      reads += 1;
      return reader.all(table);
    },
  });
  const to = (type: string, service: string | null, reader: Reader = store) =>
    [...subscriptions.to(counting(reader), { type, service })].map(({ id }) => id).sort();
  expect(to('Tested', roads)).toEqual(['all', 'all of roads', 'several', 'tested roads']);
  expect(to('Tested', null)).toEqual(['all', 'several']);
  expect(to('Unknown', 'Maps/Unknown.MapServer')).toEqual(['all']);
  expect(reads).toBe(1);

  await store.update((transaction) => {
    transaction.remove(webhooks, 'several');
    expect(to('Tested', null, transaction)).toEqual(['all']);
    transaction.put(webhooks, webhook('new', { changeTypes: ['Tested'] }));
    expect(to('Tested', null, transaction)).toEqual(['all', 'new']);
    expect(to('Tested', null)).toEqual(['all', 'several']);
  });
  expect(to('Tested', null)).toEqual(['all', 'new']);
});
