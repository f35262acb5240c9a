// The curl command that sends the request of a delivery from a shell. It has the signature of the request, but no key.
import { maskedValue } from '../../audit/value.ts';
import { quote } from '../../rest/html/curl.ts';
import { html, type Html } from '../../rest/html/html.ts';
import type { OutgoingRequest } from '../http-client.ts';

/** Linux limits one argument of a command to 128 KiB. A terminal becomes slow before that. */
const maxBodyLength = 32_768;

/** Terminals do not take these from a paste as they are. */
// eslint-disable-next-line no-control-regex
const controls = /[\0-\x09\x0b-\x1f\x7f]/;

export function isInCommand(body: string): boolean {
  return body.length <= maxBodyLength && !controls.test(body);
}

export function sendCommand({ url, headers, body }: OutgoingRequest): string {
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
  const command = sendCommand(request);
  const isMasked = Object.values(request.headers).includes(maskedValue) || new URL(request.url).search !== '';
  return html`<details>
    <summary>Send it from a shell</summary>
    <p>
      The command sends the request with these headers, the signature included. A receiver that checks the timestamp may refuse it after
      some minutes; a redelivery has a new signature.
    </p>
    ${isMasked && html`<p>Replace <code>${maskedValue}</code> with the values of your custom headers and of the query of the address. This page does not show them.</p>`}
    ${
      !isInCommand(request.body) &&
      html`<p>
        The payload does not fit into the command. Save <code>request.body</code> of
        <a href="?f=json">the JSON of this page</a> as the file <code>payload</code>, without a line break at its end.
      </p>`
    }
    <pre tabindex="0" data-copy>${command}</pre>
  </details>`;
}
