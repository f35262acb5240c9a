// When a user signed in last.
import type { User } from './user.ts';

/** A sign-in before the user was created was that of a removed user with the same name. */
export function lastSignInOf({ createdAt }: User, signIn: number | undefined): number | null {
  return signIn !== undefined && signIn >= createdAt ? signIn : null;
}
