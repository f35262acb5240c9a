// The limits of every HTTP request, in both protocols. body-limits.ts has those of all bodies together.

export const maxBodyBytes = 1024 ** 2;

export const maxHeaders = 1000;

/** The options of Node's HTTP server. */
export const serverLimits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 300_000,
  keepAliveTimeout: 72_000,
  // Without this, Node checks the first two timeouts only every 30 seconds.
  connectionsCheckingInterval: 1000,
} as const;

/** A path segment cannot be longer than the headers. */
export const maxParamLength = serverLimits.maxHeaderSize;

export const connectionLimits = {
  /** Without this, a client that does not read its answer would keep the connection open. */
  timeoutMs: 120_000,
  /** Without this, a refused client could keep its side of the connection open. */
  lingerMs: 2_000,
  /** Requests that wait for their answers. After as many, other connections have a turn. */
  maxUnanswered: 16,
} as const;

/** Answers of more than `minBytes` that are in memory because their clients have not read them yet. */
export const largeAnswers = {
  minBytes: 64 * 1024,
  maxBytes: 96 * 1024 ** 2,
  maxBytesPerNetwork: 64 * 1024 ** 2,
} as const;
