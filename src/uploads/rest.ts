// REST edge of uploads (contract 6).
import { ServiceError } from '../errors.ts';
import { type Resource, items, operation, resource, success } from '../rest/resource.ts';
import { asJson } from '../lib/json.ts';
import { defaultTo, file, required, text } from '../rest/fields.ts';
import type { Store } from '../store/store.ts';
import type { Reader } from '../store/transaction.ts';
import { isXmlText } from '../lib/text.ts';
import type { Runtime } from '../runtime.ts';
import { type Upload, deleteUpload, listUploads, plainFileName, storeUpload, uploads } from './upload.ts';

export type UploadsOptions = {
  store: Store;
  runtime: Runtime;
  mostBytesInAll: number;
  /** Whether something that runs needs the upload. */
  isInUse: (reader: Reader, itemID: string) => boolean;
};

export function uploadsResource({ store, runtime, mostBytesInAll, isInUse }: UploadsOptions): Resource {
  const upload = operation({
    title: 'Upload file',
    description: 'Keeps a file for an operation that takes one by its id.',
    access: 'administrator',
    effect: 'writes',
    fields: {
      itemFile: required(file('The file.')),
      description: defaultTo(text('What it is.', { to: 1000 }), ''),
    },
    check: ({ values: { itemFile } }) => {
      const name = plainFileName(itemFile?.filename ?? 'x');
      const isNamed = name !== '' && name.length <= 255 && isXmlText(name);
      const message = 'must be a file with a name of at most 255 characters.';
      return { problems: isNamed ? [] : [{ field: 'itemFile', message }] };
    },
    run: async ({ values: { itemFile, description } }) => {
      const item: Upload = {
        itemID: runtime.newId(),
        itemName: plainFileName(itemFile.filename),
        description,
        date: runtime.now(),
        committed: true,
        contentType: itemFile.contentType,
        size: itemFile.bytes.length,
      };
      await store.update((transaction) => storeUpload(transaction, item, itemFile.bytes, mostBytesInAll));
      return { json: { status: 'success', item: asJson(item) }, names: { itemID: item.itemID } };
    },
  });

  const item = resource<Upload>({
    title: 'Upload',
    titleOf: ({ itemName }) => itemName,
    description: 'One uploaded file.',
    access: 'administrator',
    read: ({ subject }) => asJson(subject),
    operations: {
      delete: operation<Upload>({
        title: 'Delete upload',
        description: 'Forgets the file.',
        access: 'administrator',
        effect: 'writes',
        fields: {},
        run: async ({ subject }) => {
          await store.update((transaction) =>
            deleteUpload(transaction, subject, isInUse(transaction, subject.itemID)),
          );
          return success;
        },
      }),
    },
  });

  return resource({
    title: 'Uploads',
    description: 'Files that were uploaded, for example licenses.',
    access: 'administrator',
    read: () => ({ items: listUploads(store).map(asJson) }),
    operations: { upload },
    items: [
      items({
        param: 'itemID',
        find: (_root, id) => {
          const found = store.get(uploads, id);
          if (!found) throw new ServiceError('not-found', 'There is no such upload.');
          return found;
        },
        list: () => listUploads(store).map(({ itemID }) => itemID),
        resource: item,
      }),
    ],
  });
}
