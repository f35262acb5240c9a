// The page at the address of the SOAP endpoint: its operations, the WSDL, and a form to try them.
import type { FastifyReply } from 'fastify';
import { type Layout, renderPage, sendHtml } from '../../console/layout.ts';
import { type Row, renderTable } from '../../console/table.ts';
import { html } from '../../lib/html.ts';
import type { OperationName } from '../soap.ts';
import { type TryOptions, purposes, tryView } from './try-it.ts';

type EndpointPage = TryOptions & {
  layout: Layout;
  soapPath: string;
  servicesPath: string;
};

export function sendEndpointPage(reply: FastifyReply, page: EndpointPage): FastifyReply {
  const { layout, baseUrl, namespace, requireTokens, operations, soapPath, servicesPath } = page;
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
      Point a SOAP toolkit at <a href="${soapPath}?wsdl">${baseUrl}?wsdl</a>. The console lists the same
      <a href="${servicesPath}">services</a>.
    </p>
    <p>Namespace: <code>${namespace}</code></p>
    <section aria-labelledby="operations">
      <h2 id="operations">Operations</h2>
      ${renderTable('Operations', ['Operation', 'Answers', 'Arguments', 'Field (type)', 'Token'], rows)}
    </section>
    ${tryView(page, layout.session)}`;
  return sendHtml(reply, 200, renderPage(layout, content));
}
