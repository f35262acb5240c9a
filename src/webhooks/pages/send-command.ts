// The curl command that sends the request of a delivery from a shell. It has the signature of the request, but no key.
import { controls, quote } from '../../console/curl.ts';
import { maskedValue } from '../../lib/audit-fields.ts';
import { html, type Html } from '../../lib/html.ts';
import type { OutgoingRequest } from '../sending/http-client.ts';

/** Linux limits one argument of a command to 128 KiB. A terminal becomes slow before that. */
const maxBodyLength = 32_768;

function isInCommand(body: string): boolean {
  return body.length <= maxBodyLength && !controls.test(body);
}

function sendCommand({ url, headers, body }: OutgoingRequest): string {
  const data = isInCommand(body) ? `--data-raw ${quote(body)}` : '--data-binary @payload';
  return [
    `curl -i -X POST ${quote(formatAddress(url))}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    data,
  ].join(' \\\n  ');
}

/** The query may contain a secret. curl would take brackets in a path for a pattern. */
function formatAddress(url: string): string {
  const { origin, pathname, search } = new URL(url);
  const path = pathname.replaceAll('[', '%5B').replaceAll(']', '%5D');
  return `${origin}${path}${search === '' ? '' : `?${maskedValue}`}`;
}

export function renderSendCommand(request: OutgoingRequest): Html {
  const masked = listMasked(request);
  return html`<details class="send">
    <summary>Send it from a shell</summary>
    <p>
      The command sends the request as above, with the same signature. A receiver that checks the timestamp may refuse it after some
      minutes; a redelivery gets a new signature.
    </p>
    ${masked.length > 0 && html`<p>Replace <code>${maskedValue}</code> with ${masked.join(' and ')}, which this page does not show.</p>`}
    ${
      !isInCommand(request.body) &&
      html`<p>
        The payload does not fit into the command. Save <code>request.body</code> of
        <a href="?f=json">the JSON of this page</a> as the file <code>payload</code>, without a line break at its end.
      </p>`
    }
    <pre tabindex="0" data-copy id="send-command" data-live="2">${sendCommand(request)}</pre>
  </details>`;
}

function listMasked({ url, headers }: OutgoingRequest): string[] {
  return [
    ...(Object.values(headers).includes(maskedValue) ? ['the values of the custom headers'] : []),
    ...(new URL(url).search === '' ? [] : ['the query of the address']),
  ];
}
