// The page at the address of the SOAP endpoint: its operations, the WSDL, and a form to try them.
import type { FastifyReply } from 'fastify';
import { type Layout, renderPage, sendHtml, type Session } from '../../console/layout.ts';
import { renderTable, type Row } from '../../console/table.ts';
import { html, type Html } from '../../lib/html.ts';
import { escapeAttribute } from '../../soap/xml/escape.ts';
import type { CatalogOperation, CatalogOperations } from '../soap.ts';

export function sendEndpointPage(
  reply: FastifyReply,
  page: TryOptions & { layout: Layout; soapPath: string; servicesPath: string },
): FastifyReply {
  const { layout, baseUrl, namespace, requireTokens, operations, soapPath, servicesPath } = page;
  const rows = Object.entries(operations).map(
    ([name, { purpose, arguments: given, response, access }]): Row => [
      html`<code>${name}</code>`,
      purpose,
      given.length === 0 ? 'none' : given.join(', '),
      `${response.field} (${response.type})`,
      access === 'open' ? 'never needed' : requireTokens ? 'needed' : 'shows more',
    ],
  );
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
    ${tryView(page, layout.session)}
    <script src="${layout.assets.tryScript}" type="module"></script>`;
  return sendHtml(reply, 200, renderPage(layout, content));
}

/** What "Try it" needs. It shows for each operation a request, a curl command, and with JavaScript a button that sends it. */
type TryOptions = {
  readonly baseUrl: string;
  readonly namespace: string;
  readonly requireTokens: boolean;
  readonly operations: CatalogOperations;
};

const initialValue = '/';

/** The script sends the form token of a session, which is valid only together with the cookie of the session. */
function tryView({ operations, requireTokens, ...options }: TryOptions, session: Session | undefined): Html {
  const blocks = Object.entries(operations).map(([name, operation]) => {
    const needsToken = operation.access === 'token' && (requireTokens || session?.caller !== undefined);
    return operationView(name, operation, { ...options, needsToken });
  });
  return html`<section aria-labelledby="try" id="try-it">
    <h2 id="try">Try it</h2>
    ${
      session?.caller &&
      session.formToken !== '' &&
      html`<p data-needs-script>
        <label>
          <input type="checkbox" id="try-session" data-form-token="${session.formToken}" checked />
          Use my session (${session.caller.username})
        </label>
      </p>`
    }
    <div class="field" data-needs-script>
      <label for="try-token">Token</label>
      <input id="try-token" type="password" autocomplete="off" aria-describedby="try-token-hint" />
      <p class="hint" id="try-token-hint">
        ${requireTokens ? 'Required by the operations that list folders and services.' : 'Optional: lists the services that its user may see.'}
        It is sent as a bearer header and not stored.
      </p>
    </div>
    ${blocks}
  </section>`;
}

function operationView(
  name: string,
  { purpose, arguments: argumentNames, response }: CatalogOperation,
  { baseUrl, namespace, needsToken }: Pick<TryOptions, 'baseUrl' | 'namespace'> & { needsToken: boolean },
): Html {
  const request = requestView(name, argumentNames, namespace);
  const header = needsToken ? ' \\\n  -H "Authorization: Bearer $TOKEN"' : '';
  const command = `curl '${baseUrl.replaceAll("'", '%27')}'${header} \\\n  -H 'Content-Type: text/xml; charset=utf-8' -d '\n`;
  return html`<details class="try" id="${name}">
    <summary><code>${name}</code> <span class="hint">${purpose}</span></summary>
    <form data-try data-needs-script>
      ${argumentNames.map(
        (argument) =>
          html`<div class="field">
            <label for="${name}-${argument}">${argument}</label>
            <input id="${name}-${argument}" name="${argument}" value="${initialValue}" />
          </div>`,
      )}
      <button>Send ${name}</button>
    </form>
    <p role="status" data-status></p>
    <div data-answer hidden>
      <h3>Response (${response.field})</h3>
      <pre tabindex="0" data-copy="answer"></pre>
    </div>
    <h3>Request</h3>
    <pre tabindex="0" data-request>${request}</pre>
    <h3>From a script</h3>
    <pre tabindex="0" data-copy>${command}${request}${"'"}</pre>
  </details> `;
}

/** The script writes the entered values into the marked elements and sends the text shown. */
function requestView(name: string, argumentNames: readonly string[], namespace: string): Html {
  const open = `<${name} xmlns="${escapeAttribute(namespace)}"`;
  const inner = argumentNames.map((argument) => {
    const [before, after] = [`      <${argument}>`, `</${argument}>\n`];
    return html`${before}<span data-argument="${argument}">${initialValue}</span>${after}`;
  });
  const [begin, end] = argumentNames.length > 0 ? [`${open}>\n`, `    </${name}>`] : [`${open}/>`, ''];
  const envelope = 'soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"';
  const head = `<${envelope}>\n  <soap:Body>\n    ${begin}`;
  return html`${head}${inner}${end}${'\n  </soap:Body>\n</soap:Envelope>'}`;
}
