// The sessions of a user: the valid tokens, newest first.
import type { ReadableStore } from '../store/store.ts';
import type { Token } from './token.ts';
import type { User } from './user.ts';

export async function listSessions(
  store: ReadableStore,
  { username, credentialId }: User,
  at: number,
): Promise<readonly Token[]> {
  const tokens = await store.tokens.list(username);
  return tokens.filter((token) => token.credentialId === credentialId && token.expires > at);
}
