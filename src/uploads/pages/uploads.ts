// The pages of uploaded files: the list, and one file.
import { formHref, linkButton } from '../../console/action.ts';
import { renderEmpty, renderListPage, selectEntries } from '../../console/list.ts';
import { compareNaturally, renderFacts, renderMenu, renderMissing } from '../../console/table.ts';
import { renderAgo } from '../../console/time.ts';
import { formatBytes } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { Upload } from '../upload.ts';

export function uploadsView(uploads: readonly Upload[], page: PageContext<unknown>): Html {
  const list = selectEntries(uploads.toReversed(), page, {
    textOf: ({ itemName, description }) => `${itemName} ${description}`,
    orders: {
      date: { compare: (one, other) => one.date - other.date, isDescending: true },
      name: { compare: (one, other) => compareNaturally(one.itemName, other.itemName) },
      size: { compare: (one, other) => one.size - other.size, isDescending: true },
    },
    usual: 50,
  });
  return renderListPage(page, list, {
    noun: 'file',
    search: 'Search files',
    actions: linkButton(page, formHref(page, page.here('upload')), 'Upload a file'),
    empty: renderEmpty('No file is uploaded. Upgrades take their licenses from here.'),
    columns: [
      {
        label: 'File',
        sort: 'name',
        cell: ({ itemID, itemName }) => html`<a href="${page.here(itemID)}"><bdi>${itemName}</bdi></a>`,
      },
      {
        label: 'Description',
        cell: ({ description }) =>
          description ? html`<bdi title="${description}">${description}</bdi>` : renderMissing(),
      },
      { label: 'Size', sort: 'size', cell: ({ size }) => formatBytes(size) },
      { label: 'Uploaded', sort: 'date', cell: ({ date }) => renderAgo(date, page.now) },
      {
        label: 'Actions',
        cell: (upload) => renderMenu(upload.itemID, upload.itemName, [deleteLink(upload, page)]),
      },
    ],
  });
}

export function uploadView(page: PageContext<Upload>): Html {
  const { itemID, itemName, description, contentType, size, date } = page.subject;
  return html`${renderFacts([
    ['Name', itemName],
    ['Description', description || renderMissing()],
    ['Type', contentType],
    ['Size', formatBytes(size)],
    ['Uploaded', renderAgo(date, page.now)],
    ['Id', html`<code>${itemID}</code>`],
  ])}
    ${deleteLink(page.subject, page)}`;
}

function deleteLink({ itemID }: Upload, page: PageContext<unknown>): Html {
  return linkButton(page, page.href('uploads', itemID, 'delete'), 'Delete …', 'destructive');
}
