// The pages of uploaded files: the list, and one file.
import { confirmedAction } from '../../console/action.ts';
import { renderAgo } from '../../console/json.ts';
import { type Row, pageRange, renderFacts, renderPager, renderTable } from '../../console/table.ts';
import { formatBytes } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Upload } from '../upload.ts';

export function uploadsView(uploads: readonly Upload[], page: PageContext<unknown>): Html {
  const range = pageRange(page.query);
  const newestFirst = uploads.toReversed().slice(range.start, range.start + range.num);
  const add = `${page.here('upload')}?next=${encodeURIComponent(page.here())}`;
  return html`<p class="lead-actions"><a class="button" href="${add}">Upload a file</a></p>
    ${
      uploads.length === 0
        ? html`<p class="none">No file is uploaded.</p>`
        : renderTable(
            'Files',
            ['File', 'Description', 'Size', 'Uploaded', 'Actions'],
            newestFirst.map((upload) => rowOf(upload, page)),
          )
    }
    ${renderPager('Files', range, uploads.length)}`;
}

function rowOf(upload: Upload, page: PageContext<unknown>): Row {
  const { itemID, itemName, description, size, date } = upload;
  return [
    html`<a href="${page.here(itemID)}">${itemName}</a>`,
    description || html`<span class="none">–</span>`,
    formatBytes(size),
    renderAgo(date, page.now),
    deleteAction(upload, page, page.here(itemID, 'delete')),
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
): Html {
  if (formToken === '' || isReadOnly) return html`<span class="none">–</span>`;
  return confirmedAction({
    action,
    label: 'Delete',
    subject: itemName,
    formToken,
    next: href('uploads'),
    warning: `The file ${itemName} is deleted at once. Settings that name it must name another one.`,
  });
}
