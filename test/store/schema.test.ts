// Compares the tables that the migrations create with the records.
import pg from 'pg';
import { expect, it } from 'vitest';
import { records } from '../../src/records.ts';
import { createDatabase } from '../kit/postgres.ts';
import { migrations } from '../kit/store.ts';
import { storeTables } from './backends.ts';
import { createTables } from './tables.ts';

/** The columns of every table, with their types. */
async function columnsAfter(statements: readonly string[]): Promise<string[]> {
  const client = new pg.Client((await createDatabase()).url);
  await client.connect();
  await client.query(statements.join('\n'));
  const { rows } = await client.query<{ column: string }>(
    `select table_name || '.' || column_name || ' ' || data_type as column
     from information_schema.columns where table_schema = current_schema()`,
  );
  await client.end();
  return rows.map(({ column }) => column).sort();
}

it('the migrations create the tables of the records', async () => {
  const expected = await columnsAfter([...storeTables, createTables(records)]);
  expect(await columnsAfter(migrations)).toEqual(expected);
});

it('the database refuses a second job in progress', async () => {
  const client = new pg.Client((await createDatabase()).url);
  await client.connect();
  await client.query(migrations.join('\n'));
  const insert = (key: string, state: string) =>
    client.query(`insert into jobs select r.* from json_populate_record(null::jobs, $1) r`, [
      JSON.stringify({
        key,
        state,
        number: key.length,
        operation: 'upgrade',
        kind: 'patch',
        target_id: '',
        installs: [],
        from: '',
        to: '',
        started_at: 0,
        started_by: '',
        runner: '',
        fence: 1,
        run_started_at: 0,
        announced: false,
        next: 0,
        workloads_done: 0,
        done_before_run: 0,
        workloads: 0,
        uploads: [],
        last_message_at: 0,
      }),
    ]);
  await insert('a', 'success');
  await insert('aa', 'in_progress');
  await expect(insert('aaa', 'in_progress')).rejects.toThrow('one_job_at_a_time');
  await insert('aaa', 'failed');
  await client.end();
});
