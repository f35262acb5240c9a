// Checks the error body of a refusal.
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';

/** The error has these fields: a message, details, or both. */
export function expectRefused(
  response: LightMyRequestResponse,
  status: number,
  error: { message?: string; details?: readonly string[] },
): void {
  expect([response.statusCode, response.json()], response.body).toMatchObject([status, { error }]);
}
