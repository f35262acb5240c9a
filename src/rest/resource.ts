// The tree of resources and operations that routes, pages and checks are derived from. A feature describes its part
// of it with `resource`, `operation` and `items`; what is said once here shows in every face of the API.
import type { Access, Caller } from '../caller.ts';
import type { ErrorKind, Problem } from '../errors.ts';
import type { Field, Fields, Values } from './fields.ts';
import type { Form } from './form.ts';
import type { Html } from './html/html.ts';
import type { CachedJson, Json } from '../lib/json.ts';
import type { Format } from './response.ts';

/** What the edge hands to a resource or operation. `S` is what the ids in the path have found. */
export type Call<S, V> = {
  readonly subject: S;
  readonly values: V;
  readonly caller: Caller;
  readonly request: RequestFacts;
};

/** The problems that fields cannot find by themselves, and what `run` needs of the work done to find them. */
export type Checked<P = unknown> = { readonly problems: readonly Problem[]; readonly prepared?: P };

export type PreparedCall<S, V, P> = Call<S, V> & { readonly prepared: P };

export type RequestFacts = {
  readonly format: Format;
  readonly address: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly cookie: string | undefined;
  readonly query: Form;
};

/** What a resource reads as. */
export type Answer = Json | CachedJson;

/** A plain answer, or one that also touches the browser: headers, and in HTML an address to go on to. */
export type Outcome = {
  readonly json: Answer;
  readonly headers?: Record<string, string>;
  readonly seeOther?: string;
  /** What a page may have put into the address it wants to go on to, as `{name}`. */
  readonly names?: Readonly<Record<string, string>>;
};

export type Resource<S = unknown> = {
  readonly title: string;
  readonly description: string;
  readonly access: Access;
  /** Some are not to be had while an upgrade job runs. */
  readonly duringJob: 'open' | 'closed';
  readonly fields: Fields;
  readonly read: (call: Call<S, never>) => Answer | Promise<Answer>;
  /** What a POST does, where it does not read like a GET. */
  readonly onPost: Operation<S> | undefined;
  /** What people are shown instead of the bare contents. */
  readonly view: View<S> | undefined;
  /** What the page is called, where there are many of the kind. */
  readonly titleOf: (subject: S) => string;
  /** Fixed names beneath this one. */
  readonly resources: Readonly<Record<string, Resource<S>>>;
  readonly operations: Readonly<Record<string, Operation<S>>>;
  /** Names beneath this one that are data; the first that accepts a segment has it. */
  readonly items: readonly Items<S>[];
};

export type View<S> = (shown: PageContext<S>) => Html | Promise<Html>;

export type PageContext<S> = {
  readonly subject: S;
  /** What the resource reads as. */
  readonly json: Json;
  readonly caller: Caller;
  /** What the page was asked with, besides what the resource itself reads. */
  readonly query: URLSearchParams;
  /** What the forms of the page carry; empty where the browser has no session. */
  readonly formToken: string;
  /** The address of this page, or of what lies beneath it. */
  readonly here: (...segments: readonly string[]) => string;
  /** The address of anything in the tree, from its root. */
  readonly href: (...segments: readonly string[]) => string;
};

export type Operation<S = unknown> = {
  readonly title: string;
  readonly description: string;
  readonly access: Access;
  readonly effect: 'reads' | 'writes';
  /** For the writes that read-only mode must let through. */
  readonly whileReadOnly: 'refused' | 'allowed';
  readonly duringJob: 'open' | 'closed';
  readonly fields: Fields;
  /** What the form shows before anything is entered: the present values of what is being changed. */
  readonly present: (subject: S) => Readonly<Record<string, string>>;
  /** Throws when such a request is not to be taken, whatever its fields are. */
  readonly guard: (request: RequestFacts) => void;
  /** What the fields cannot tell by themselves. Sees the values that could be read; answers further problems. */
  readonly check: ((call: Call<S, never>) => Checked | Promise<Checked>) | undefined;
  /** Replaces the derived form, where people need something simpler. */
  readonly form: 'derived' | 'sign-in';
  /** What it may be refused for besides what follows from all this. */
  readonly refusals: readonly ErrorKind[];
  readonly run: (call: PreparedCall<S, never, never>) => Outcome | Promise<Outcome>;
};

export type Items<S = unknown> = {
  /** How the segment reads in a route: `{folder}`. */
  readonly param: string;
  /** What the segment consists of, a dot between, where it is more than one thing. */
  readonly parts?: readonly string[];
  readonly accepts: (segment: string) => boolean;
  /** Throws a not-found error when there is no such thing or the caller may not see it. */
  readonly find: (subject: S, segment: string, caller: Caller) => unknown;
  /** The segments a page links to. */
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
  const nothingBeneath = { resources: {}, operations: {}, items: [] };
  const plain = { onPost: undefined, view: undefined, titleOf: () => described.title };
  return { duringJob: 'open', fields: {}, ...plain, ...nothingBeneath, ...described };
}

/** A resource that only holds others: it lists them. */
export function folder<S>(described: Described, resources: Record<string, Resource<S>>): Resource<S> {
  return resource({ ...described, resources, read: () => ({ resources: Object.keys(resources).sort() }) });
}

export function operation<S, F extends Fields = Fields, P = undefined>(
  described: Described & {
    effect: 'reads' | 'writes';
    whileReadOnly?: 'allowed';
    fields: F;
    present?: (subject: S) => Readonly<Record<string, string>>;
    guard?: (request: RequestFacts) => void;
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
  accepts: (segment: string) => boolean;
  find: (subject: S, segment: string, caller: Caller) => T | Promise<T>;
  list: (subject: S, caller: Caller) => readonly string[] | Promise<readonly string[]>;
  resource: Resource<T>;
}): Items<S> {
  return described as unknown as Items<S>;
}

/** Closes a resource, its operations and all beneath it while a job runs. */
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

/** The same for all that lies beneath a resource that stays open itself. */
export function closeBeneathDuringJob<S>(open: Resource<S>): Resource<S> {
  return { ...closeDuringJob(open), duringJob: 'open' };
}

/** For items known by any id: `accepts` of a path segment that could be one. */
export function isId(segment: string): boolean {
  return segment !== '' && !segment.includes('%');
}

export const success: Outcome = { json: { status: 'success' } };
