// The limits of every HTTP request, whichever protocol it speaks.

/** A urlencoded body, or a text field of a multipart form. */
export const maxBodyBytes = 1024 ** 2;

export const maxHeaderBytes = 16 * 1024;

/** A path segment cannot be longer than the headers. */
export const maxParamLength = maxHeaderBytes;

export const headersTimeoutMs = 10_000;

export const requestTimeoutMs = 300_000;

export const keepAliveTimeoutMs = 72_000;

/** A connection on which nothing moves for so long is closed: its client does not read the answer. */
export const connectionTimeoutMs = 120_000;

/** How long a client may keep its side open after it was refused. */
export const lingerMs = 2_000;
