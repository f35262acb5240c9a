// The caller of a request, as both protocols and every feature see it.

export const roles = ['member', 'publisher', 'administrator'] as const;

export type Role = (typeof roles)[number];

/** A caller without a token is undefined. */
export type Caller =
  | {
      readonly username: string;
      readonly role: Role;
      /** The name of the key that the caller uses instead of a token. */
      readonly key?: string;
    }
  | undefined;

export function isRoleAbove(role: Role, other: Role): boolean {
  return roles.indexOf(role) > roles.indexOf(other);
}

/**
 * `anyone`: a token is ignored. `optional`: a token is not needed, but one that is given is checked. Otherwise the
 * lowest role.
 */
export type Access = 'anyone' | 'optional' | Role;

export function needsToken(access: Access): access is Role {
  return access !== 'anyone' && access !== 'optional';
}

export function mayCall(caller: Caller, access: Access): boolean {
  if (!needsToken(access)) return true;
  return caller !== undefined && roles.indexOf(caller.role) >= roles.indexOf(access);
}

export type Credentials = {
  readonly bearer: string | undefined;
  readonly field: string | undefined;
  /**
   * Browsers may send the cookie with foreign forms, so without the form token in the field it counts for reads
   * only.
   */
  readonly cookie: string | undefined;
  readonly readsOnly: boolean;
  /** This is a function, because only a token that is bound to an address needs it. */
  readonly address: () => string;
  readonly referer: string | undefined;
};

export type Identity = {
  readonly caller: NonNullable<Caller>;
  /** Names the token or key in the store. Computing it for every check of a request would cost measurable time. */
  readonly tokenHash: string;
  /** Empty unless the session cookie identified the caller. */
  readonly formToken: string;
};

/** Throws for a bad token, and returns undefined without one. Waits only for a token that is not known yet. */
export type Identify = (credentials: Credentials) => Identity | undefined | Promise<Identity | undefined>;

const scheme = 'bearer ';

export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization?.slice(0, scheme.length).toLowerCase() !== scheme) return undefined;
  return authorization.slice(scheme.length).trim() || undefined;
}
