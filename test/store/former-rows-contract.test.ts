// Contract of rows and cells that a former version stored: every store completes them with the fields of this version.
import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { tables as steward } from '../../src/app/backends.ts';
import type { Key } from '../../src/auth/key.ts';
import type { User } from '../../src/auth/user.ts';
import type { Folder, Service } from '../../src/catalog/catalog.ts';
import { notAudited } from '../../src/lib/audit-fields.ts';
import type { Cell, Table } from '../../src/store/state.ts';
import type { Store } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import type { Redelivery } from '../../src/webhooks/queue/redelivery.ts';
import type { FailureWindow } from '../../src/webhooks/sending/failure-window.ts';
import { createTestDatabase } from './backends.ts';
import { keepsakes, token, upload, webhook } from './definitions.ts';

type Write = (transaction: Transaction) => void;
type Tables = readonly Table<never>[];
type Opened = { readonly data: unknown; readonly added: string };

const limits = {
  retention: { deliveries: { history: 10, recoverable: 10 }, jobs: 10 },
  maxEventIds: 10,
};

/** Each opens what the former version has written. */
const stores: [string, (write: Write, tables: Tables) => Promise<Store>][] = [
  [
    'a restored snapshot',
    async (write, tables) => {
      const former = createMemoryStore(limits);
      await former.update(write);
      const restored = createMemoryStore(limits);
      restored.load(JSON.parse(JSON.stringify(former.dump())) as ReturnType<typeof former.dump>, tables);
      return restored;
    },
  ],
  [
    'a database',
    async (write, tables) => {
      const { open } = await createTestDatabase();
      await (await open({ tables })).update(write);
      return open({ tables });
    },
  ],
  [
    'a process that follows another',
    async (write, tables) => {
      const { open } = await createTestDatabase();
      const follower = await open({ tables });
      await (await open({ tables })).update(write);
      await follower.refresh();
      return follower;
    },
  ],
];

/** Writes a row of a version whose table had only these fields. */
function putFormer(transaction: Transaction, table: Table<never>, row: object): void {
  const secretFields = table.secretFields?.filter((field) => field in row) ?? [];
  transaction.put({ ...table, secretFields }, row as never);
}

describe.each(stores)('%s', (_name, open) => {
  it('has the defaults of the fields that a row lacks, secret ones too, and keeps the others', async () => {
    const store = await open(
      (transaction) => {
        putFormer(transaction, keepsakes, { id: 'old' });
        transaction.put(keepsakes, { id: 'new', data: null, signatureID: 'a secret' });
      },
      [keepsakes],
    );
    expect(store.get(keepsakes, 'old')).toStrictEqual({
      id: 'old',
      data: 'a default',
      signatureID: 'a default',
    });
    expect(store.get(keepsakes, 'new')).toStrictEqual({ id: 'new', data: null, signatureID: 'a secret' });
    expect(Object.isFrozen(store.get(keepsakes, 'old'))).toBe(true);
  });

  it('has the initial value of the fields that a cell lacks', async () => {
    const past: Cell<{ readonly data: unknown }> = {
      name: 'opened',
      initial: { data: null },
      auditFields: notAudited,
    };
    const present: Cell<Opened> = { ...past, initial: { data: null, added: 'initial' } };
    const store = await open((transaction) => transaction.write(past, { data: 5 }), []);
    expect(store.read(present)).toStrictEqual({ data: 5, added: 'initial' });
    await store.update((transaction) => transaction.write(present, { data: 5, added: 'written' }));
    expect(store.read(present)).toStrictEqual({ data: 5, added: 'written' });
  });

  it('has every field of this version in the rows of version 0.2.0', async () => {
    const store = await open((transaction) => {
      for (const { name, ...table } of steward) {
        const [present, fields] = [rowsOfToday, fieldsOf020].map((all) => all[name as TableName]) as [
          object,
          string,
        ];
        const kept = Object.entries(present).filter(([field]) => fields.split(' ').includes(field));
        expect(kept).toHaveLength(fields.split(' ').length);
        putFormer(transaction, { name, ...table }, Object.fromEntries(kept));
      }
    }, steward);
    for (const table of steward) {
      const [row = {}] = store.all(table as Table<object>);
      const fields = Object.keys(rowsOfToday[table.name as TableName]);
      expect(Object.keys(row).sort(), `fields of ${table.name}: see its defaults`).toEqual(fields.sort());
    }
  });
});

const user: User = {
  username: 'Ann',
  role: 'member',
  passwordHash: null,
  createdAt: 1,
  lastSignIn: null,
  subject: null,
};
const key: Key = {
  id: 'k',
  hash: 'h',
  username: 'Ann',
  name: 'key',
  role: 'member',
  createdAt: 1,
  expires: null,
  lastUsedAt: null,
  lastAddress: null,
};
const folder: Folder = { folderName: 'Harbour', description: '' };
const service: Service = {
  folderName: 'Harbour',
  serviceName: 'Depths',
  type: 'MapServer',
  description: '',
  capabilities: '',
  parentType: '',
  url: null,
  access: 'public',
  definition: {},
  configuredState: 'STARTED',
  createdAt: 1,
  updatedAt: 1,
};
const failureWindow: FailureWindow & { readonly webhookId: string } = { webhookId: 'w', start: 1, count: 1 };
const redelivery: Redelivery = { id: 'r', webhookId: 'w', filter: {}, requestedAt: 1 };

/** Complete rows. The compiler demands every new field here, and the test then demands its default. */
const rowsOfToday = {
  users: user,
  keys: key,
  tokens: token('t'),
  folders: folder,
  services: service,
  uploads: upload('u'),
  webhooks: webhook('w'),
  failureWindows: failureWindow,
  redeliveries: redelivery,
};

type TableName = keyof typeof rowsOfToday;

/** The fields of the rows that version 0.2.0 stores. They never change. */
const fieldsOf020 = {
  users: 'username role passwordHash createdAt lastSignIn subject',
  keys: 'id hash username name role createdAt expires lastUsedAt lastAddress',
  tokens: 'hash id username createdAt expires binding address userAgent lastUsedAt',
  folders: 'folderName description',
  services: 'folderName serviceName type description capabilities parentType url access createdAt updatedAt',
  uploads: 'itemID itemName description date committed contentType size',
  webhooks:
    'id name hookUrl changeTypes service contentType active createdAt updatedAt deactivatedAt deactivatedBy ' +
    'deactivations dismissedAt warning headers signatureKey previousKeys',
  failureWindows: 'webhookId start count',
  redeliveries: 'id webhookId filter requestedAt',
};
