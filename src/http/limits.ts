// The limits of every HTTP request, in both protocols.

export const maxBodyBytes = 1024 ** 2;

export const maxHeaderBytes = 16 * 1024;

export const maxHeaders = 1000;

/** A path segment cannot be longer than the headers. */
export const maxParamLength = maxHeaderBytes;

export const headersTimeoutMs = 10_000;

export const requestTimeoutMs = 300_000;

export const keepAliveTimeoutMs = 72_000;

/** Without this, a client that does not read its answer would keep the connection open. */
export const connectionTimeoutMs = 120_000;

/** Without this, a refused client could keep its side of the connection open. */
export const lingerMs = 2_000;
