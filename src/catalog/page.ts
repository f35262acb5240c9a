// The page a browser is shown at the catalog's address: what this is, its operations, the WSDL.
import type { FastifyReply } from 'fastify';
import { html } from '../rest/html.ts';
import { pageOf, sendHtml } from '../rest/pages.ts';
import type { CatalogOperation } from './soap.ts';

export type CatalogPage = {
  baseUrl: string;
  namespace: string;
  requireTokens: boolean;
  operations: Readonly<Record<string, CatalogOperation>>;
};

export function showCatalogPage(
  reply: FastifyReply,
  { baseUrl, namespace, requireTokens, operations }: CatalogPage,
): FastifyReply {
  const rows = Object.entries(operations).map(
    ([name, { arguments: given, response, access }]) =>
      html`<tr>
        <td><code>${name}</code></td>
        <td>${given.length === 0 ? 'none' : given.join(', ')}</td>
        <td>${response.field} (${response.type})</td>
        <td>${access === 'open' ? 'never needed' : requireTokens ? 'needed' : 'shows more'}</td>
      </tr> `,
  );
  const content = html`<p>
      This address is a SOAP service (1.1 and 1.2, document/literal): it lists the published services and the
      folders that hold them. Point a SOAP toolkit at <a href="${baseUrl}?wsdl">${baseUrl}?wsdl</a>.
    </p>
    <p>Namespace: <code>${namespace}</code></p>
    <table>
      <caption>
        Operations
      </caption>
      <thead>
        <tr>
          <th scope="col">Operation</th>
          <th scope="col">Arguments</th>
          <th scope="col">Answer</th>
          <th scope="col">Token</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>`;
  return sendHtml(reply, 200, pageOf({ title: 'Service catalog', crumbs: [] }, content));
}
