// Request bodies of the three kinds for bodies.test.ts and body-memory.test.ts.
import { ofLength } from './limit-requests.ts';
import { write } from './wire.ts';

export type Kind = {
  readonly name: string;
  readonly url: string;
  readonly contentType: string;
  /** A body of about this size. */
  readonly body: (bytes: number) => string;
};

const parts = { head: '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n', tail: '\r\n--b--\r\n' };

export const kinds: readonly Kind[] = [
  {
    name: 'urlencoded',
    url: '/tokens/generateToken',
    contentType: 'application/x-www-form-urlencoded',
    body: (bytes) => `x=${'a'.repeat(bytes)}`,
  },
  {
    name: 'multipart',
    url: '/tokens/generateToken',
    contentType: 'multipart/form-data; boundary=b',
    body: (bytes) => parts.head + 'a'.repeat(bytes) + parts.tail,
  },
  { name: 'SOAP', url: '/services', contentType: 'text/xml', body: ofLength },
];

/** A request in chunks of the given size; without an end it is never complete. */
export function inChunks(
  { url, contentType }: Kind,
  body: string,
  chunkBytes: number,
  { headers = {}, end = '0\r\n\r\n' }: { headers?: Record<string, string>; end?: string } = {},
): Buffer {
  const head = [
    `POST ${url} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ncontent-type: ${contentType}\r\n`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`),
    '\r\n',
  ];
  const chunks: string[] = [];
  for (let at = 0; at < body.length; at += chunkBytes) {
    const chunk = body.slice(at, at + chunkBytes);
    chunks.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  }
  return Buffer.from(head.join('') + chunks.join('') + end);
}

/** The headers of a request and the beginning of its body, which never ends. */
export function begin(
  { url, contentType }: Kind,
  headers: Record<string, string> = {},
  body = '',
  length = 10_000_000,
): Buffer {
  return write(
    {
      method: 'POST',
      url,
      headers: { 'content-type': contentType, 'content-length': String(length), ...headers },
      body,
    },
    true,
  );
}
