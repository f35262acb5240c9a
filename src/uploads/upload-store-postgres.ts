// Uploaded files in PostgreSQL. A row counts all files and their bytes, so that the limits hold without reading
// every file.
import { insertEntries } from '../audit/audit-store-postgres.ts';
import type { AuditEntry } from '../store/audit-entry.ts';
import { type Client, type Database, query } from '../store/postgres/database.ts';
import type { NewUpload, UploadLimits, UploadStore, UploadWrites } from './upload-store.ts';
import type { Upload } from './upload.ts';

export class PostgresUploads implements UploadStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(): Promise<readonly Upload[]> {
    const rows = await this.#database.ask<{ upload: Upload }>('select upload from uploads order by placed');
    return rows.map(({ upload }) => upload);
  }

  async find(id: string): Promise<Upload | undefined> {
    const [row] = await this.#database.ask<{ upload: Upload }>('select upload from uploads where id = $1', [
      id,
    ]);
    return row?.upload;
  }

  async content(id: string): Promise<Uint8Array | undefined> {
    const [row] = await this.#database.ask<{ content: Buffer }>('select content from uploads where id = $1', [
      id,
    ]);
    return row?.content;
  }

  async add(
    { upload, bytes }: NewUpload,
    limits: UploadLimits,
    entry: AuditEntry,
  ): Promise<'stored' | keyof UploadLimits> {
    const stored = await this.#database.write(
      `with counted as (
         update upload_totals set count = count + 1, bytes = bytes + $3
         where bytes + $3 <= $5 and count < $6 returning 1),
       audited as (${insertEntries('$7', 'where exists (select from counted)')})
       insert into uploads (id, upload, size, content)
       select $1, $2, $3, $4 where exists (select from counted) returning 1`,
      [
        upload.itemID,
        JSON.stringify(upload),
        upload.size,
        bytes,
        limits.bytes,
        limits.count,
        JSON.stringify([entry]),
      ],
    );
    if (stored.length > 0) return 'stored';
    const [totals] = await this.#database.ask<{ bytes: number }>('select bytes from upload_totals');
    return (totals?.bytes ?? 0) + upload.size > limits.bytes ? 'bytes' : 'count';
  }

  writesOn(client: Client): UploadWrites {
    return {
      delete: async (id) => {
        await query(
          client,
          `with deleted as (delete from uploads where id = $1 returning size)
           update upload_totals set count = count - 1, bytes = bytes - deleted.size from deleted`,
          [id],
        );
      },
    };
  }
}
