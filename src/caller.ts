// Who is asking, as both protocols and every feature see it.

export const roles = ['member', 'publisher', 'administrator'] as const;

export type Role = (typeof roles)[number];

/** `undefined` stands for a caller without a token. */
export type Caller = { readonly username: string; readonly role: Role } | undefined;

/** The least a caller must be: each role may do what the ones before it may. */
export type Access = 'anyone' | Role;

export function mayCall(caller: Caller, access: Access): boolean {
  if (access === 'anyone') return true;
  return caller !== undefined && roles.indexOf(caller.role) >= roles.indexOf(access);
}

/** What a request shows of itself; the carriers of a token in the order in which they count. */
export type Credentials = {
  readonly bearer: string | undefined;
  /** The form field `token`, on GET the query's. */
  readonly field: string | undefined;
  /** The session cookie: good for reading only, unless the field holds its form token. */
  readonly cookie: string | undefined;
  readonly readsOnly: boolean;
  /** One object for all that comes on a connection. */
  readonly connection: object;
  readonly address: () => string;
  readonly referer: string | undefined;
};

export type Identity = {
  readonly caller: NonNullable<Caller>;
  /** For the forms of a page shown to a session; empty where no session cookie identified the caller. */
  readonly formToken: string;
};

/** Undefined when the request carries no token at all; throws when it carries a bad one. */
export type Identify = (presented: Credentials) => Identity | undefined;

const bearer = 'bearer ';

/** Most connections say the same again and again. To compare a whole header is quick; a part of it is cut out and compared slowly. */
const saidLast = new WeakMap<
  object,
  { readonly authorization: string; readonly token: string | undefined }
>();

/** The token of an `Authorization: Bearer …` header; other schemes are not looked at. */
export function bearerOf(authorization: string | undefined, connection: object): string | undefined {
  if (authorization === undefined) return undefined;
  const known = saidLast.get(connection);
  if (known?.authorization === authorization) return known.token;
  const isBearer = authorization.slice(0, bearer.length).toLowerCase() === bearer;
  const token = (isBearer && authorization.slice(bearer.length).trim()) || undefined;
  saidLast.set(connection, { authorization, token });
  return token;
}
