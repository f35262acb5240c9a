// Stores the deliveries of the events of the server itself.
//
// Their number grows with the webhooks, and an update holds the lock that all updates wait for. So the update only
// stores the event, and marks it as announced. After the commit, its process adds the deliveries. Every process looks
// for announced events every two seconds, so what a killed one leaves is distributed too.
import { createMutex } from '../../../lib/async.ts';
import type { Database } from '../../../store/postgres/database.ts';
import type { WebhookEvent } from '../../event.ts';
import type { Distribution } from '../delivery-queue.ts';
import type { AnnounceOptions } from '../delivery.ts';
import type { Publishing } from './publishing.ts';

type Announced = Omit<WebhookEvent, 'timestamp'> & {
  readonly number: number;
  readonly at: number;
  readonly announced: AnnounceOptions;
};

const batch = 500;

const selectAnnounced = `select number, id, type, at, service, data, announced from events
  where announced is not null order by number limit ${batch}`;

export class Distributor {
  readonly #database: Database;
  readonly #publishing: Publishing;
  readonly #mutex = createMutex();
  /** The work that has not begun yet. Callers share it: it will find every event that was announced before their call. */
  #next: Promise<void> | undefined;
  /** Unknown until the services of the process are created. */
  rule: Distribution | undefined;

  constructor(database: Database, publishing: Publishing) {
    this.#database = database;
    this.#publishing = publishing;
  }

  distribute(): Promise<void> {
    this.#next ??= this.#mutex(() => {
      this.#next = undefined;
      return this.#distributeAll();
    });
    return this.#next;
  }

  async #distributeAll(): Promise<void> {
    const { rule } = this;
    if (rule === undefined) return;
    for (let found = batch; found === batch;) {
      const rows = await this.#database.ask<Announced>(selectAnnounced);
      found = rows.length;
      await Promise.all(
        rows.map(({ number, announced, id, type, at, service, data }) => {
          const event = { id, type, timestamp: at, service, data };
          return this.#publishing.publish({
            rule: (reader) => rule(reader, event, announced),
            announced: number,
          });
        }),
      );
    }
  }
}
