// The contents of uploaded files in PostgreSQL.
import type { Database } from '../store/postgres/database.ts';
import type { UploadContents } from './upload-store.ts';
import { uploads } from './upload.ts';

export class PostgresUploads implements UploadContents {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async content(id: string): Promise<Uint8Array | undefined> {
    const [row] = await this.#database.ask<{ content: Buffer }>(
      'select content from upload_contents where id = $1',
      [id],
    );
    return row?.content;
  }

  async add(id: string, content: Uint8Array): Promise<void> {
    await this.#database.write('insert into upload_contents (id, content) values ($1, $2)', [id, content]);
  }

  async remove(id: string): Promise<void> {
    await this.#database.write('delete from upload_contents where id = $1', [id]).catch(() => undefined);
  }

  /** Removes the contents that a process has left when it ended before or after an update. */
  async removeUnused(): Promise<void> {
    await this.#database.write(
      `delete from upload_contents c where stored_at < clock_timestamp() - interval '1 hour'
       and not exists (select from state where kind = $1 and key = c.id and value is not null)`,
      [uploads.name],
    );
  }
}
