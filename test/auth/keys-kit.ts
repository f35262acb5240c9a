// Shared by the tests of keys: a server, and requests about keys.
import { afterEach, beforeEach, expect } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import { type Server, startServer } from '../kit/server.ts';
import type { Failure } from './tokens-kit.ts';

export const own = '/admin/security/self/keys';
export const all = '/admin/security/keys';
export const dayMs = 86_400_000;

/** The server of the present test. */
export let server: Server;

export function useKeys(): void {
  beforeEach(async () => {
    server = await startServer();
  });
  afterEach(() => server.close());
}

export type Created = { status: string; key: string; id: string };
export type Listed = {
  id: string;
  name: string;
  role: Role;
  createdAt: number;
  expires: number | null;
  lastUsedAt: number | null;
  lastAddress: string | null;
  username?: string;
};
export type Response = Awaited<ReturnType<Server['get']>>;

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
export const as = (role: Role) => bearer(server.token(role));
export const create = (fields: Record<string, string>, role: Role = 'administrator', on = server) =>
  on.post(`${own}/create`, fields, as(role));
export async function createKey(
  name: string,
  role?: Role,
  fields: Record<string, string> = {},
): Promise<Created> {
  const response = await create({ name, ...fields }, role);
  expect(response.statusCode, response.body).toBe(200);
  return response.json();
}
export const list = async (role: Role = 'administrator', path = own, on = server) =>
  (await on.get(path, as(role))).json<{ keys: Listed[] }>().keys;
export const statusOf = async (key: string, path = '/admin', on = server) =>
  (await on.get(path, bearer(key))).statusCode;
export const detailsOf = (response: Response) => response.json<Failure>().error.details;
export const changeUser = (operation: string, fields: Record<string, string>) =>
  server.post(`/admin/security/users/${operation}`, fields, as('administrator'));
