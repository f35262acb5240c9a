// Repeats deliveries that match a redelivery, in batches. A batch is one statement that commits by itself, as in
// publishing.ts: it links the matching deliveries to new ones and inserts these. Two processes that run it at the
// same moment get different deliveries.
import { outdatedProgram } from '../../../store/postgres/database.ts';
import { webhooks } from '../../webhook.ts';
import type { Redelivered, RedeliveryBatch } from '../delivery-queue.ts';
import { redeliveries, type Redelivery } from '../redelivery.ts';
import type { PublishingOptions } from './publishing.ts';
import { pendingCountStatement } from './rows.ts';
import { type DeliverySearch, ofManyShapes, searchRedelivery } from './search.ts';
import { anyVersion, arePublicationsOutdated } from './staleness.ts';

const nothingLeft: Redelivered = { created: 0, isDone: true };

export class Redelivering {
  readonly #options: PublishingOptions;

  constructor(options: PublishingOptions) {
    this.#options = options;
  }

  async redeliver(redelivery: Redelivery, batch: RedeliveryBatch): Promise<Redelivered> {
    const { database, replica, refresh, pending, trimmer } = this.#options;
    if (!this.#isWanted(redelivery)) return nothingLeft;
    database.requireWritable();
    const result = await pending.during(async () => {
      const created = await this.#createAt(redelivery, batch, replica.seen);
      if (created !== undefined) return created;
      await refresh();
      if (!this.#isWanted(redelivery)) return 'ended';
      const repeated = await this.#createAt(redelivery, batch, anyVersion);
      // A newer version has changed the schema meanwhile.
      if (repeated === undefined) throw outdatedProgram();
      return repeated;
    });
    if (result === 'ended') return nothingLeft;
    trimmer.noteRedelivered(redelivery.webhookId, result);
    await trimmer.trim();
    return { created: result, isDone: result < batch.most && (await this.#isDone(redelivery)) };
  }

  /** Whether the redelivery has not ended, and its webhook is active. */
  #isWanted({ id, webhookId }: Redelivery): boolean {
    const { reader } = this.#options;
    return reader.get(redeliveries, id) !== undefined && reader.get(webhooks, webhookId)?.active === true;
  }

  /**
   * Returns how many redeliveries it has created; undefined, and creates none, if a webhook has changed since the
   * version `seen`.
   */
  async #createAt(
    redelivery: Redelivery,
    { most, at, newId }: RedeliveryBatch,
    seen: number,
  ): Promise<number | undefined> {
    const { database, self, pending } = this.#options;
    const search = searchOf(redelivery);
    const [row] = await database.write<{ is_outdated: boolean; count: number; bytes: number }>(
      createStatement(search),
      [...search.values, Array.from({ length: most }, newId), at, self, seen, database.knownSchema],
      ofManyShapes,
    );
    if (!row || row.is_outdated) return undefined;
    pending.add({ count: row.count, bytes: row.bytes });
    return row.count;
  }

  /** Without locks: a delivery that another process is repeating still matches, because that process may be killed. */
  async #isDone(redelivery: Redelivery): Promise<boolean> {
    const search = searchOf(redelivery);
    const [left] = await this.#options.database.ask(
      search.select('d.id', 'oldest', { start: '0', num: '1' }),
      search.values,
      ofManyShapes,
    );
    return left === undefined;
  }
}

function searchOf({ webhookId, filter, requestedAt }: Redelivery): DeliverySearch {
  return searchRedelivery({ ...filter, webhookId }, requestedAt);
}

/** The first parameters are those of the search. */
function createStatement(search: DeliverySearch): string {
  const first = search.values.length + 1;
  const [ids, at, self, seen, known] = [0, 1, 2, 3, 4].map((index) => `$${first + index}`) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const found = search.select('d.ctid', 'oldest', { start: '0', num: `cardinality(${ids}::text[])` });
  return `with current as (select ${arePublicationsOutdated(seen, known)} as is_outdated),
    locked as materialized (
      select d.* from deliveries d
      where d.ctid = any(array(select f.ctid from (${found}) f)) and d.redelivered_as is null
        and not (select is_outdated from current)
      for update of d skip locked),
    numbered as materialized (
      select l.*, (${ids}::text[])[row_number() over ()] as new_id from locked l),
    marked as (
      update deliveries d set redelivered_as = n.new_id from numbered n where d.id = n.id returning d.id),
    added as (
      insert into deliveries (id, webhook_id, event_id, event_type, event_at, service, data, bytes, is_ping, state, created_at,
        attempts, priority, since, redelivery_of)
      select new_id, webhook_id, event_id, event_type, event_at, service, data, bytes, false, 'pending', ${at}::bigint, '[]', 2,
        ${at}::bigint, id
      from numbered order by created_at, placed returning bytes),
    sums as (select count(*) as count, coalesce(sum(bytes), 0)::bigint as bytes from added),
    counted as (${pendingCountStatement(`${self}::text`, 'redeliver', 'select count, bytes from sums')})
    select is_outdated, count, bytes from current, sums`;
}
