// REST resources of uploads.
import * as z from 'zod';
import { ServiceError, isUnavailable, problemsOf } from '../lib/errors.ts';
import { asJson } from '../lib/json.ts';
import type { Runtime } from '../lib/runtime.ts';
import { isXmlText } from '../lib/text.ts';
import { answerObject, time, ignored } from '../rest/answer.ts';
import { file, text } from '../rest/field-types.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Resource, items, resource } from '../rest/resource.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import { uploadView, uploadsView } from './pages/uploads.ts';
import {
  type Upload,
  addUpload,
  inUse,
  isContentType,
  listUploads,
  plainFileName,
  uploads,
} from './upload.ts';

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
  ignored,
  status: z.literal('success'),
  item: uploadAnswer,
});

type UploadsOptions = {
  readonly store: ReadableStore;
  readonly runtime: Runtime;
  readonly maxTotalBytes: number;
  readonly isInUse: (reader: Reader, itemID: string) => boolean;
};

export function uploadsResource(options: UploadsOptions): Resource {
  const { store } = options;
  return resource({
    title: 'Uploads',
    description: 'Uploaded files, for example licenses.',
    answer: uploadsAnswer,
    read: () => ({ items: listUploads(store) }),
    view: (page) => uploadsView(listUploads(store), page),
    operations: { upload: uploadOperation(options) },
    items: [
      items({
        param: 'itemID',
        find: (_root, id) => {
          const found = store.get(uploads, id);
          if (!found) throw noSuchUpload();
          return found;
        },
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
    answer: uploadAnswer,
    read: ({ subject }) => asJson(subject),
    view: uploadView,
    operations: {
      delete: operation<Upload>({
        title: 'Delete upload',
        description: 'Deletes the file.',
        isDestructive: true,
        warning: () => 'Settings that name the file must name another one.',
        run: async ({ subject, update }) => {
          await update((transaction) => {
            // Another request may have deleted it meanwhile.
            if (!transaction.get(uploads, subject.itemID)) throw noSuchUpload();
            if (isInUse(transaction, subject.itemID)) throw inUse(subject);
            transaction.remove(uploads, subject.itemID);
          });
          await store.uploads.remove(subject.itemID);
          return succeeded(`${subject.itemName} was deleted.`, {
            name: 'Show all uploads',
            path: ['uploads'],
          });
        },
      }),
    },
  });
}

function uploadOperation({ store, runtime, maxTotalBytes }: UploadsOptions): Operation {
  return operation({
    title: 'Upload file',
    description: 'Stores a file. Other operations refer to it by its id.',
    fields: {
      itemFile: file().meta({ label: 'File', description: 'The file.' }),
      description: text({ to: 1000 }).default('').describe('A description of the file.'),
    },
    answer: uploadedAnswer,
    check: ({ values: { itemFile } }) => {
      if (itemFile === undefined) return { problems: [] };
      const name = plainFileName(itemFile.filename);
      const isNamed = name !== '' && name.length <= 255 && isXmlText(name);
      const problems = [
        ...(isNamed ? [] : ['must be a file with a name of at most 255 characters.']),
        ...(isContentType(itemFile.contentType)
          ? []
          : ['must have a content type of at most 255 characters, without control characters.']),
      ];
      return { problems: problemsOf('itemFile', problems) };
    },
    run: async ({ values: { itemFile, description }, update }) => {
      const item: Upload = {
        itemID: runtime.newId(),
        itemName: plainFileName(itemFile.filename),
        description,
        date: runtime.now(),
        committed: true,
        contentType: itemFile.contentType,
        size: itemFile.bytes.length,
      };
      await store.uploads.add(item.itemID, itemFile.bytes);
      try {
        await update((transaction) => addUpload(transaction, item, maxTotalBytes), {
          target: `uploads/${item.itemID}`,
        });
      } catch (error) {
        // After a failure of the database, nobody knows whether the upload was added.
        if (!isUnavailable(error)) await store.uploads.remove(item.itemID);
        throw error;
      }
      const link = { name: 'Show it', path: ['uploads', item.itemID] };
      const outcome = succeeded(`${item.itemName} was uploaded.`, link, { item: asJson(item) });
      return { ...outcome, names: { itemID: item.itemID } };
    },
  });
}

function noSuchUpload(): ServiceError {
  return new ServiceError('not-found', 'There is no such upload.');
}
