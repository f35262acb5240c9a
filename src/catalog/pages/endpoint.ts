// The page a browser is shown at the catalog's address: what this is, its operations, the WSDL, and a way to try it.
import type { FastifyReply } from 'fastify';
import { html } from '../../rest/html/html.ts';
import { type Assets, renderPage, sendHtml } from '../../rest/html/layout.ts';
import { type Row, renderTable } from '../../rest/html/table.ts';
import type { OperationName } from '../soap.ts';
import { type TryOptions, purposes, tryView } from './try-it.ts';

export type CatalogPage = TryOptions & {
  assets: Assets;
  /** Where the same services are administered. */
  directoryUrl: string;
};

export function showCatalogPage(reply: FastifyReply, page: CatalogPage): FastifyReply {
  const { assets, baseUrl, namespace, requireTokens, operations, directoryUrl } = page;
  const rows = Object.entries(operations).map(([name, { arguments: given, response, access }]): Row => [
    html`<code>${name}</code>`,
    purposes[name as OperationName],
    given.length === 0 ? 'none' : given.join(', '),
    `${response.field} (${response.type})`,
    access === 'open' ? 'never needed' : requireTokens ? 'needed' : 'shows more',
  ]);
  const content = html`<p class="lead">
      A SOAP service (1.1 and 1.2, document/literal) that lists the published services and the folders that
      hold them.
    </p>
    <p>
      Point a SOAP toolkit at <a href="${baseUrl}?wsdl">${baseUrl}?wsdl</a>. People find the same services in
      the <a href="${directoryUrl}">administrator directory</a>.
    </p>
    <p>Namespace: <code>${namespace}</code></p>
    <section aria-labelledby="operations">
      <h2 id="operations">Operations</h2>
      ${renderTable('Operations', ['Operation', 'Answers', 'Arguments', 'Field (type)', 'Token'], rows)}
    </section>
    ${tryView(page)}`;
  const crumbs = [{ name: 'catalog', href: baseUrl }];
  return sendHtml(reply, 200, renderPage({ title: 'Service catalog', assets, crumbs }, content));
}
