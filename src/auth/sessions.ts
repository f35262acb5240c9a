// The sessions of a user: the tokens that are valid.
import type { Token } from './token.ts';
import type { User } from './user.ts';

export function validSessions(
  tokens: readonly Token[],
  { credentialId }: User,
  at: number,
): readonly Token[] {
  return tokens.filter((token) => token.credentialId === credentialId && token.expires > at);
}
