// The tree of resources and operations. Routes, checks, pages, curl commands and the OpenAPI document are derived from it.
// A feature describes its part with `resource`, `operation` and `items`.
import type { Access, Caller } from '../caller.ts';
import type { ErrorKind, Problem } from '../errors.ts';
import type { CachedJson, Json } from '../lib/json.ts';
import type { Field, Fields, Values } from './fields.ts';
import type { Html } from './html/html.ts';
import type { Form } from './form.ts';
import type { Format } from './response.ts';

/** What a resource or operation is called with. `S` is what the ids in the path name. */
export type Call<S, V> = {
  readonly subject: S;
  readonly values: V;
  readonly caller: Caller;
  readonly request: RequestContext;
};

/** The request behind a call, for the few operations whose answer depends on it. */
export type RequestContext = {
  readonly format: Format | undefined;
  readonly address: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The session cookie. */
  readonly cookie: string | undefined;
  readonly query: Form;
};

/** The problems that a field cannot find by itself, and what the check has read, for `run`. A check without problems sets `prepared`. */
export type Checked<P = unknown> = { readonly problems: readonly Problem[]; readonly prepared?: P };

export type PreparedCall<S, V, P> = Call<S, V> & { readonly prepared: P };

/** What a resource reads as. */
export type Answer = Json | CachedJson;

/** The answer of an operation. */
export type Outcome = {
  readonly json: Answer;
  readonly headers?: Record<string, string>;
  /** With `f=html`: where the browser is redirected, whatever `next` says. */
  readonly seeOther?: string;
  /** With `f=html`: values for `{name}` in `next`. */
  readonly names?: Readonly<Record<string, string>>;
};

export type Resource<S = unknown> = {
  readonly title: string;
  readonly description: string;
  readonly access: Access;
  /** Whether it answers while an upgrade job runs. */
  readonly duringJob: 'open' | 'closed';
  readonly fields: Fields;
  readonly read: (call: Call<S, never>) => Answer | Promise<Answer>;
  /** What a POST does, where it does not read like a GET. */
  readonly onPost: Operation<S> | undefined;
  /** The page, where it is not the generic view of the JSON. */
  readonly view: View<S> | undefined;
  /** The title of the page of one item. */
  readonly titleOf: (subject: S) => string;
  readonly resources: Readonly<Record<string, Resource<S>>>;
  readonly operations: Readonly<Record<string, Operation<S>>>;
  /** Children whose names are data. */
  readonly items: readonly Items<S>[];
};

export type View<S> = (context: PageContext<S>) => Html | Promise<Html>;

export type PageContext<S> = {
  readonly subject: S;
  /** What the resource reads as. */
  readonly json: Json;
  readonly caller: Caller;
  /** The query of the page, without `token` and `f`. */
  readonly query: URLSearchParams;
  /** For the forms of the page; empty where the browser has no session. */
  readonly formToken: string;
  /** The address of this page, or of one beneath it. */
  readonly here: (...segments: readonly string[]) => string;
  /** The address of any page of the tree, from its root. */
  readonly href: (...segments: readonly string[]) => string;
};

export type Operation<S = unknown> = {
  readonly title: string;
  readonly description: string;
  readonly access: Access;
  readonly effect: 'reads' | 'writes';
  readonly whileReadOnly: 'refused' | 'allowed';
  readonly duringJob: 'open' | 'closed';
  readonly fields: Fields;
  /** What the form shows at first: the present values of what it changes. */
  readonly present: (subject: S) => Readonly<Record<string, string>>;
  /** Throws when the request itself is not acceptable, whatever its fields are. */
  readonly guard: (request: RequestContext) => void;
  /** Gets the fields that could be read, and returns further problems. */
  readonly check: ((call: Call<S, never>) => Checked | Promise<Checked>) | undefined;
  /** `sign-in` replaces the generated form. */
  readonly form: 'derived' | 'sign-in';
  /** The errors it may answer besides those that follow from this description. */
  readonly refusals: readonly ErrorKind[];
  readonly run: (call: PreparedCall<S, never, never>) => Outcome | Promise<Outcome>;
};

export type Items<S = unknown> = {
  /** The name of the path parameter: `{folder}`. */
  readonly param: string;
  /** The names of its parts, joined by a dot, where it has several. */
  readonly parts?: readonly string[];
  /** The segments it takes, as a regular expression, where two kinds of items lie beneath one resource. */
  readonly pattern?: string;
  /** Throws a not-found error when there is no such item or the caller may not see it. */
  readonly find: (subject: S, segment: string, caller: Caller) => unknown;
  /** The segments that the page links to. */
  readonly list: (subject: S, caller: Caller) => readonly string[] | Promise<readonly string[]>;
  readonly resource: Resource;
};

type Described = { title: string; description: string; access: Access };

export function resource<S, F extends Fields = Record<string, Field<never>>>(
  described: Described & {
    fields?: F;
    read: (call: Call<S, Values<F>>) => Answer | Promise<Answer>;
    onPost?: Operation<S>;
    view?: View<S>;
    titleOf?: (subject: S) => string;
    resources?: Record<string, Resource<S>>;
    operations?: Record<string, Operation<S>>;
    items?: readonly Items<S>[];
  },
): Resource<S> {
  return {
    duringJob: 'open',
    fields: {},
    onPost: undefined,
    view: undefined,
    titleOf: () => described.title,
    resources: {},
    operations: {},
    items: [],
    ...described,
  };
}

/** A resource that only lists the resources beneath it. */
export function folder<S>(described: Described, resources: Record<string, Resource<S>>): Resource<S> {
  return resource({ ...described, resources, read: () => ({ resources: Object.keys(resources).sort() }) });
}

export function operation<S, F extends Fields = Fields, P = undefined>(
  described: Described & {
    effect: 'reads' | 'writes';
    whileReadOnly?: 'allowed';
    fields: F;
    present?: (subject: S) => Readonly<Record<string, string>>;
    guard?: (request: RequestContext) => void;
    check?: (call: Call<S, Partial<Values<F>>>) => Checked<P> | Promise<Checked<P>>;
    form?: 'sign-in';
    refusals?: readonly ErrorKind[];
    run: (call: PreparedCall<S, Values<F>, P>) => Outcome | Promise<Outcome>;
  },
): Operation<S> {
  return {
    whileReadOnly: 'refused',
    duringJob: 'open',
    present: () => ({}),
    guard: () => undefined,
    check: undefined,
    form: 'derived',
    refusals: [],
    ...described,
  };
}

export function items<S, T>(described: {
  param: string;
  parts?: readonly string[];
  pattern?: string;
  find: (subject: S, segment: string, caller: Caller) => T | Promise<T>;
  list: (subject: S, caller: Caller) => readonly string[] | Promise<readonly string[]>;
  resource: Resource<T>;
}): Items<S> {
  return described as unknown as Items<S>;
}

/** Closes everything beneath a resource while a job runs; the resource itself stays open. */
export function closeBeneathDuringJob<S>(open: Resource<S>): Resource<S> {
  return { ...closeDuringJob(open), duringJob: 'open' };
}

function closeDuringJob<S>(open: Resource<S>): Resource<S> {
  const closeAll = <T>(entries: Readonly<Record<string, T>>, close: (entry: T) => T) =>
    Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, close(entry)]));
  const closeOperation = (operation: Operation<S>) => ({ ...operation, duringJob: 'closed' as const });
  return {
    ...open,
    duringJob: 'closed',
    resources: closeAll(open.resources, closeDuringJob<S>),
    onPost: open.onPost && closeOperation(open.onPost),
    operations: closeAll(open.operations, closeOperation),
    items: open.items.map((entry) => ({ ...entry, resource: closeDuringJob(entry.resource) })),
  };
}

export const success: Outcome = { json: { status: 'success' } };

/** A resource or operation with its place in the tree. */
export type Entry = {
  /** The path beneath the root, with data segments as `{param}`. */
  readonly route: string;
  /** The items of the data segments, in their order. */
  readonly items: readonly Items[];
  readonly resource: Resource;
  readonly operation: Operation | undefined;
};

export function accessOf({ operation, resource }: Entry): Access {
  return (operation ?? resource).access;
}

export function fieldsOf({ operation, resource }: Entry): Fields {
  return (operation ?? resource).fields;
}

/** Every resource and operation of the tree. */
export function* walk(root: Resource, route = '', items: readonly Items[] = []): Generator<Entry> {
  const below = (name: string) => (route === '' ? name : `${route}/${name}`);
  yield { route, items, resource: root, operation: undefined };
  if (root.onPost) yield { route, items, resource: root, operation: root.onPost };
  for (const [name, operation] of Object.entries(root.operations)) {
    yield { route: below(name), items, resource: root, operation };
  }
  for (const [name, child] of Object.entries(root.resources)) yield* walk(child, below(name), items);
  for (const item of root.items) yield* walk(item.resource, below(`{${item.param}}`), [...items, item]);
}
