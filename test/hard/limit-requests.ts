// Builds requests of a given size for limits.test.ts.
import { gzipSync } from 'node:zlib';
import { namespace } from '../kit/server.ts';
import { write } from './wire.ts';

export const authorization = 'Bearer token-of-the-administrator';
export const text = (length: number) => 'x'.repeat(length);

export function postForm(url: string, body: string): Buffer {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization };
  return write({ method: 'POST', url, headers, body });
}

/** Each part is the text after `name=`, and the content. */
export function postParts(
  url: string,
  parts: [string, string][],
  more: Record<string, string> = { authorization },
): Buffer {
  const written = parts.map(
    ([head, content]) => `--b\r\nContent-Disposition: form-data; name=${head}\r\n\r\n${content}\r\n`,
  );
  const headers = { 'content-type': 'multipart/form-data; boundary=b', ...more };
  return write({ method: 'POST', url, headers, body: `${written.join('')}--b--\r\n` });
}

export const upload = (content: string, name = 'a') =>
  postParts('/admin/uploads/upload', [[`"itemFile"; filename="${name}"`, content]]);

export const importManifest = (versions: object[]) =>
  postParts('/admin/system/upgrades/importManifest', [
    ['"manifestFile"; filename="m.json"', JSON.stringify(versions)],
  ]);

/** A chain of releases; the first follows the installed one. */
export const releases = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, index) => ({
    id: `rel_${index}`,
    type: 'release',
    version: '12.0.0',
    build: String(9000 + index),
    containers: [],
    previousReleaseBuild: index === 0 ? '1234' : String(8999 + index),
    ...more,
  }));

export const nest = (depth: number): unknown => (depth === 0 ? 0 : [nest(depth - 1)]);

export const envelope = (header: string, end = '') =>
  `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header>${header}</e:Header><e:Body>` +
  `<GetFolders xmlns="${namespace}"/></e:Body></e:Envelope>${end}`;

export function postSoap(body: string, isZipped = false): Buffer {
  const headers = { 'content-type': 'text/xml', ...(isZipped && { 'content-encoding': 'gzip' }) };
  const sent = isZipped ? gzipSync(body).toString('latin1') : body;
  return write({ method: 'POST', url: '/services', headers, body: sent });
}

/** An envelope of the given size. */
export const ofLength = (bytes: number) => envelope('', ' '.repeat(bytes - envelope('').length));
