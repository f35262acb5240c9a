// Why an outgoing request failed, in words for people.

/** Its message contains no secrets, so pages may show it. */
export class RequestError extends Error {}

/** This process has no file descriptor or memory left. It says nothing about the other side. */
export function isOwnError(error: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'ENOMEM'].includes((error as NodeJS.ErrnoException).code ?? '');
}

const messages: readonly (readonly [codes: RegExp, message: string])[] = [
  [/^ECONNREFUSED$/, 'The connection was refused.'],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'The connection was not made in time.'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, 'The address cannot be reached.'],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_(SOCKET|RES_CONTENT_LENGTH_MISMATCH))$/,
    'The connection was closed before the answer was complete.',
  ],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'The headers of the answer are too large.'],
  [/^HTTPParserError$/, 'The answer is not valid HTTP.'],
  [/^(EPROTO|ERR_SSL_.*)$/, 'The TLS handshake failed.'],
  [/^UND_ERR_DESTROYED$/, 'The request was cancelled: the server is stopping.'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'The certificate is not valid: it is for another name.'],
];

/** The message contains no path, query or header of the request: those may hold secrets. */
export function toRequestError(error: Error): RequestError {
  if (error instanceof RequestError) return error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const known = messages.find(([codes]) => codes.test(code))?.[1];
  // Node appends advice about its command line after a semicolon.
  const [reason = ''] = error.message.split(';', 1);
  const isCertificate = /^(?!ERR_).*CERT|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$/.test(code);
  const message = isCertificate ? `The certificate is not valid: ${reason}.` : `The request failed: ${code}.`;
  return new RequestError(known ?? message, { cause: error });
}
