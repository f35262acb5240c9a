// The caller of a request, as both protocols and every feature see it.

export const roles = ['member', 'publisher', 'administrator'] as const;

export type Role = (typeof roles)[number];

/** `undefined` is a caller without a token. */
export type Caller = { readonly username: string; readonly role: Role } | undefined;

/** The lowest role that may call; each role may do what the ones before it may. */
export type Access = 'anyone' | Role;

export function mayCall(caller: Caller, access: Access): boolean {
  if (access === 'anyone') return true;
  return caller !== undefined && roles.indexOf(caller.role) >= roles.indexOf(access);
}

/** What identifies the caller of a request; the carriers of a token in the order in which they count. */
export type Credentials = {
  readonly bearer: string | undefined;
  /** The form field `token`; on GET, that of the query. */
  readonly field: string | undefined;
  /** The session cookie. It is accepted for reads only, unless the field holds the form token of the session. */
  readonly cookie: string | undefined;
  readonly readsOnly: boolean;
  /** Only a token that is bound to an address needs it. */
  readonly address: () => string;
  readonly referer: string | undefined;
};

export type Identity = {
  readonly caller: NonNullable<Caller>;
  /** For the forms of a page; empty unless the session cookie identified the caller. */
  readonly formToken: string;
};

/** Returns undefined when the request carries no token; throws when it carries a bad one. */
export type Identify = (credentials: Credentials) => Identity | undefined;

const scheme = 'bearer ';

/** The token of an `Authorization: Bearer …` header; other schemes are ignored. */
export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization?.slice(0, scheme.length).toLowerCase() !== scheme) return undefined;
  return authorization.slice(scheme.length).trim() || undefined;
}
