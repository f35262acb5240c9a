// Deletes the events to which no delivery refers any more.
//
// What deletes deliveries notes their events, and these are checked together every two seconds: the deliveries of an
// event often end at the same time. A slow sweep finds what a killed process has left.
import type { Database } from '../../../store/postgres/database.ts';

const batch = 1_000;
const sweptAtOnce = 5_000;

/** SQL condition. With a plain `not exists`, PostgreSQL may compare all events with all deliveries. */
const isUnused = ['queue', 'finished']
  .flatMap((table) => [`${table} where created_at = e.at`, `${table} where is_late`])
  .map((rows) => `(select count(*) from (select from ${rows} and event_number = e.number limit 1) r) = 0`)
  .join(' and ');

const deleteNoted = `delete from events e where e.number = any($1::bigint[]) and e.announced is null and ${isUnused}`;

const deleteNext = `with next as materialized (
    select * from events where number > $1 order by number limit ${sweptAtOnce}),
  deleted as (
    delete from events where number = any(array(select e.number from next e where e.announced is null and ${isUnused})))
  select max(number) as last from next`;

export class UnusedEvents {
  readonly #database: Database;
  #noted = new Set<number>();
  #sweptTo = -1;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Notes events of deliveries that were deleted. */
  note(numbers: readonly number[]): void {
    for (const number of numbers) this.#noted.add(number);
  }

  async deleteNoted(): Promise<void> {
    const noted = [...this.#noted];
    this.#noted = new Set();
    for (let start = 0; start < noted.length; start += batch)
      await this.#database.write(deleteNoted, [noted.slice(start, start + batch)]);
  }

  /** Checks the next events, and begins again after the last one. */
  async sweep(): Promise<void> {
    const [next] = await this.#database.write<{ last: number | null }>(deleteNext, [this.#sweptTo]);
    this.#sweptTo = next?.last ?? -1;
  }
}
