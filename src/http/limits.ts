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

/** A body of at most this size that arrives together with the headers counts against no limit. */
export const maxUncountedBytes = 16 * 1024;

/** Smaller chunks of a body are merged into buffers of this size. */
export const maxMergedBytes = 64 * 1024;

/** Holds for bodies over `maxMergedBytes`. Every chunk costs processor time, whatever its size. */
export const minAverageChunkBytes = 64;

/** Slightly less than promised, because Node reports a chunk that arrives in two segments as two. */
export const refusedAverageChunkBytes = 60;

/**
 * Bodies of callers without a valid bearer token or session cookie. Most arrive at once. A body that has not
 * arrived after `slotAfterMs` takes a slot of its network.
 */
export const anonymousBodies = {
  maxBytes: 64 * 1024 ** 2,
  slotsPerNetwork: 4,
  slotAfterMs: 1000,
  timeoutMs: 60_000,
} as const;

export const signedInBodies = { maxBytes: 128 * 1024 ** 2 } as const;

/** Answers of more than `minBytes` that are in memory because their clients have not read them yet. */
export const largeAnswers = {
  minBytes: 64 * 1024,
  maxBytes: 96 * 1024 ** 2,
  maxBytesPerNetwork: 64 * 1024 ** 2,
} as const;

/** Requests of one connection that wait for their answers. After as many, other connections have a turn. */
export const maxUnanswered = 16;
