// Helpers for the tests of forms: building bodies, sending them, and reading the problems in a response.
import type { Server } from '../kit/server.ts';

export type Part = { name: string; value: string | Buffer; filename?: string; type?: string };

export function multipart(parts: Part[]): { headers: Record<string, string>; payload: Buffer } {
  const chunks = parts.flatMap(({ name, value, filename, type }) => [
    Buffer.from(
      `--xyz\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n` +
        (type === undefined ? '' : `Content-Type: ${type}\r\n`) +
        '\r\n',
    ),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
  return {
    headers: { 'content-type': 'multipart/form-data; boundary=xyz' },
    payload: Buffer.concat([...chunks, Buffer.from('--xyz--\r\n')]),
  };
}

export const sendTo =
  (server: () => Server) =>
  (url: string, body: { headers: Record<string, string>; payload: Buffer | string }) =>
    server().http.inject({ method: 'POST', url, ...body });

export const token = 'token-of-the-administrator';
export const mode = '/admin/mode';
export const details = (response: { json: () => unknown }) =>
  (response.json() as { error: { details: string[] } }).error.details;
