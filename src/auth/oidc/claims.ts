// Who a user of the identity provider is here: the user name and the role that its claims give.
import { type Role, roles as allRoles } from '../../lib/caller.ts';
import { type Problem, ServiceError } from '../../lib/errors.ts';
import { truncate } from '../../lib/text.ts';
import { usernames } from '../user.ts';

export type Claims = Readonly<Record<string, unknown>>;

export type ClaimRules = {
  /** The claims that may contain the user name. The first that is present counts. */
  readonly username: readonly string[];
  /** The claim with the groups. Dots lead into objects. */
  readonly roles: string;
  readonly roleOf: ReadonlyMap<string, Role>;
  /** Undefined: a user without a group that has a role has none. */
  readonly defaultRole: Role | undefined;
};

/** Whether more claims would change nothing. */
export function isComplete(
  claims: Claims,
  { username: [preferred = ''], roles, roleOf }: ClaimRules,
): boolean {
  const proof = preferred === 'email' ? ['email_verified'] : [];
  const needed = [preferred, ...proof, ...(roleOf.size > 0 ? [roles] : [])];
  return needed.every((name) => valueOf(claims, name) !== undefined);
}

/** Undefined without a role. Throws if the user may not have the name. */
export function accountOf(claims: Claims, rules: ClaimRules): { username: string; role: Role } | undefined {
  const role = roleIn(claims, rules);
  return role && { username: usernameIn(claims, rules), role };
}

function usernameIn(claims: Claims, rules: ClaimRules): string {
  const claim = rules.username.find((name) => valueOf(claims, name) !== undefined);
  if (claim === undefined)
    throw refused('The identity provider gave no user name.', {
      message: `It must give the claim ${rules.username.join(' or ')}.`,
    });
  const username = valueOf(claims, claim);
  if (typeof username !== 'string' || !usernames.pattern.test(username))
    throw refused('The identity provider gave a name that no user may have.', {
      message: `${claim} must be ${usernames.allowed}${typeof username === 'string' ? `, not “${truncate(username, 64)}”` : ''}.`,
    });
  // Anybody may claim an address that nobody has verified.
  if (claim === 'email' && ![true, 'true'].includes(claims.email_verified as never))
    throw refused('The identity provider has not verified your email address.');
  return username;
}

function roleIn(claims: Claims, { roles, roleOf, defaultRole }: ClaimRules): Role | undefined {
  const given = [valueOf(claims, roles)].flat();
  const found = given.flatMap((group) => (typeof group === 'string' ? (roleOf.get(group) ?? []) : []));
  return allRoles.findLast((one) => found.includes(one)) ?? defaultRole;
}

/** A claim may have dots in its own name, such as an address. */
function valueOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name] ?? undefined;
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Claims)[part];
  }
  return value ?? undefined;
}

function refused(message: string, problem?: Problem): ServiceError {
  return new ServiceError('forbidden', message, problem && { problems: [problem] });
}
