// REST resources of uploads.
import { z } from 'zod';
import { ServiceError } from '../errors.ts';
import { asJson } from '../lib/json.ts';
import { isXmlText } from '../lib/text.ts';
import { answerObject, time } from '../rest/answer.ts';
import { defaultTo, file, required, text } from '../rest/fields.ts';
import { type Operation, type Resource, items, operation, resource, success } from '../rest/resource.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Reader } from '../store/transaction.ts';
import { type Upload, deleteUpload, listUploads, plainFileName, storeUpload, uploads } from './upload.ts';

const uploadAnswer = answerObject('Upload', 'An uploaded file.', {
  itemID: z.string().describe('Other operations refer to the file by this id.'),
  itemName: z.string().describe('The name of the file.'),
  description: z.string(),
  date: time.describe('When it was uploaded, in milliseconds since the epoch.'),
  committed: z.literal(true),
  contentType: z.string(),
  size: z.int().nonnegative().describe('Bytes.'),
});

const uploadsAnswer = answerObject('Uploads', 'The uploaded files.', { items: z.array(uploadAnswer) });

const uploadedAnswer = answerObject('Uploaded', 'The new upload.', {
  status: z.literal('success'),
  item: uploadAnswer,
});

export type UploadsOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly maxTotalBytes: number;
  readonly isInUse: (reader: Reader, itemID: string) => boolean;
};

export function uploadsResource(options: UploadsOptions): Resource {
  const { store } = options;
  return resource({
    title: 'Uploads',
    description: 'Uploaded files, for example licenses.',
    access: 'administrator',
    answer: uploadsAnswer,
    read: () => ({ items: listUploads(store).map(asJson) }),
    operations: { upload: uploadOperation(options) },
    items: [
      items({
        param: 'itemID',
        find: (_root, id) => {
          const found = store.get(uploads, id);
          if (!found) throw new ServiceError('not-found', 'There is no such upload.');
          return found;
        },
        list: () => listUploads(store).map(({ itemID }) => itemID),
        resource: uploadResource(options),
      }),
    ],
  });
}

function uploadResource({ store, isInUse }: UploadsOptions): Resource<Upload> {
  return resource<Upload>({
    title: 'Upload',
    titleOf: ({ itemName }) => itemName,
    description: 'One uploaded file.',
    access: 'administrator',
    answer: uploadAnswer,
    read: ({ subject }) => asJson(subject),
    operations: {
      delete: operation<Upload>({
        title: 'Delete upload',
        description: 'Deletes the file.',
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
}

function uploadOperation({ store, runtime, maxTotalBytes }: UploadsOptions): Operation {
  return operation({
    title: 'Upload file',
    description: 'Stores a file. Other operations refer to it by its id.',
    access: 'administrator',
    effect: 'writes',
    fields: {
      itemFile: required(file('The file.')),
      description: defaultTo(text('A description of the file.', { to: 1000 }), ''),
    },
    answer: uploadedAnswer,
    check: ({ values: { itemFile } }) => {
      if (itemFile === undefined) return { problems: [] };
      const name = plainFileName(itemFile.filename);
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
      await store.update((transaction) => storeUpload(transaction, item, itemFile.bytes, maxTotalBytes));
      return { json: { status: 'success', item: asJson(item) }, names: { itemID: item.itemID } };
    },
  });
}
