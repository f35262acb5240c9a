// Helpers for the tests of tokens: signing in, and checking whether a token works.
import { expect } from 'vitest';
import { type Server, password } from '../kit/server.ts';

export const signInPath = '/tokens/generateToken';
export type Token = { token: string; expires: number; ssl: boolean };
export type Failure = { error: { code: number; message: string; details: string[] } };

/** Takes a function because the server is started anew for each test. */
export function tokensOf(server: () => Server) {
  async function signIn(
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
  ): Promise<Token> {
    const response = await server().post(signInPath, { username: 'member', password, ...fields }, headers);
    expect(response.statusCode, response.body).toBe(200);
    return response.json();
  }

  async function statusOf(token: string, headers: Record<string, string> = {}): Promise<number> {
    return (await server().get('/admin', { authorization: `Bearer ${token}`, ...headers })).statusCode;
  }

  return { signIn, statusOf };
}
