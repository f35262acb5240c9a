// When a user signed in last.
import { type User, users } from './user.ts';

/** An earlier sign-in was that of a removed user with the same name. */
export function lastSignInOf(user: User, signIns: ReadonlyMap<string, number>): number | null {
  const at = signIns.get(users.keyOf(user));
  return at !== undefined && at >= user.createdAt ? at : null;
}
