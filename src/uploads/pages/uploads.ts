// The pages of uploaded files: the list, and one file.
import { confirmedAction, linkButton } from '../../console/action.ts';
import { renderAgo } from '../../console/time.ts';
import {
  type Row,
  compareNaturally,
  listParameters,
  pageRange,
  renderEmpty,
  renderFacts,
  renderList,
  renderMenu,
  renderPager,
  renderToolbar,
  sortBy,
  sortableColumn,
  sortingOf,
} from '../../console/table.ts';
import { formatBytes, formatCount } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Upload } from '../upload.ts';

const orders = { date: 'descending', name: 'ascending', size: 'descending' } as const;

export function uploadsView(uploads: readonly Upload[], page: PageContext<unknown>): Html {
  const keep = listParameters(page.query, ['q', 'sort', 'order']);
  const { q: search = '', ...sortedBy } = keep;
  const sorting = sortingOf(page.query, orders);
  const column = (label: string, key: keyof typeof orders) => sortableColumn(label, key, sorting, keep);
  const words = search.trim().toLowerCase();
  const found = uploads.filter(({ itemName, description }) =>
    `${itemName} ${description}`.toLowerCase().includes(words),
  );
  const listed = sortBy(found.reverse(), sorting, {
    date: (one, other) => one.date - other.date,
    name: (one, other) => compareNaturally(one.itemName, other.itemName),
    size: (one, other) => one.size - other.size,
  });
  const range = pageRange(page.query, { usual: 50 });
  const add = `${page.here('upload')}?next=${encodeURIComponent(page.here())}`;
  if (uploads.length === 0)
    return renderEmpty(
      'No file is uploaded. Upgrades take their licenses from here.',
      page.isReadOnly ? undefined : { href: add, label: 'Upload the first file' },
    );
  return html`${renderToolbar({
    action: page.here(),
    search: { label: 'Search files', value: search },
    keep: sortedBy,
    count: formatCount(listed.length, 'file'),
    actions: linkButton(page, add, 'Upload a file'),
  })}
    ${
      listed.length === 0
        ? renderEmpty('No file matches.', { href: page.here(), label: 'Remove the filters' })
        : renderList(
            'Files',
            [
              column('File', 'name'),
              'Description',
              column('Size', 'size'),
              column('Uploaded', 'date'),
              'Actions',
            ],
            listed.slice(range.start, range.start + range.num).map((upload) => rowOf(upload, page)),
          )
    }
    ${renderPager('Files', range, listed.length, { keep })}`;
}

function rowOf(upload: Upload, page: PageContext<unknown>): Row {
  const { itemID, itemName, description, size, date } = upload;
  return [
    html`<a href="${page.here(itemID)}"><bdi>${itemName}</bdi></a>`,
    description ? html`<bdi title="${description}">${description}</bdi>` : html`<span class="none">–</span>`,
    formatBytes(size),
    renderAgo(date, page.now),
    renderMenu(itemID, itemName, [
      html`<a href="${page.here(itemID)}">Open</a>`,
      deleteAction(upload, page, page.here(itemID, 'delete')),
    ]),
  ];
}

export function uploadView(page: PageContext<Upload>): Html {
  const { itemID, itemName, description, contentType, size, date } = page.subject;
  return html`${renderFacts([
    ['Name', itemName],
    ['Description', description || html`<span class="none">–</span>`],
    ['Type', contentType],
    ['Size', formatBytes(size)],
    ['Uploaded', renderAgo(date, page.now)],
    ['Id', html`<code>${itemID}</code>`],
  ])}
    ${deleteAction(page.subject, page, page.here('delete'))}`;
}

function deleteAction(
  { itemName }: Upload,
  { href, formToken, isReadOnly }: PageContext<unknown>,
  action: string,
): Html | false {
  return (
    formToken !== '' &&
    !isReadOnly &&
    confirmedAction({
      action,
      label: 'Delete',
      subject: itemName,
      formToken,
      next: href('uploads'),
      warning: `The file ${itemName} is deleted at once. Settings that name it must name another one.`,
    })
  );
}
