// The tree of resources and operations, which the features describe. Routes, checks, pages, curl commands and the
// OpenAPI document are derived from it.
import type { Access, Caller } from '../lib/caller.ts';
import type { ErrorKind, Problem } from '../lib/errors.ts';
import type { Html } from '../lib/html.ts';
import type { Json, SharedJson } from '../lib/json.ts';
import type { Change } from '../store/audit-change.ts';
import type { Actor, AuditEntry } from '../store/audit-entry.ts';
import type { Transaction } from '../store/transaction.ts';
import { type AnswerOf, type AnswerSchema, resourceListAnswer, successAnswer } from './answer.ts';
import type { Field, Fields, Values } from './fields.ts';
import type { Form } from './form.ts';
import type { Format } from './response.ts';

/** `S` is the item that the ids in the path name. */
export type Call<S, V> = {
  readonly subject: S;
  readonly values: V;
  readonly caller: Caller;
  /** Names the token of the caller in the store. */
  readonly tokenHash: string | undefined;
  /** Identifies and authorizes the caller again, for a read that waits before its answer. */
  readonly requireCallerNow: () => Promise<Caller>;
  readonly request: RequestContext;
  /** Whether a page has sent it: the session of a browser, with its form token. */
  readonly isForm: boolean;
};

/** The call of an operation. An operation that writes calls `update` or `auditEntry` once. */
export type OperationCall<S, V> = Call<S, V> & {
  /**
   * Updates the store and records the change in the audit trail, in one transaction. The transaction first
   * identifies and authorizes the caller again, with the errors of the first check: meanwhile the token may have
   * ended, or the user may have been removed or got another role. `at` is now.
   */
  readonly update: <T>(
    rule: (transaction: Transaction, at: number) => T,
    options?: UpdateOptions<T>,
  ) => Promise<T>;
  /** The entry of the audit trail for an update that a service runs, which records it together with the change. */
  readonly auditEntry: () => AuditEntry;
  /** Who acts, as the audit trail records it. */
  readonly actor: Actor | undefined;
};

export type UpdateOptions<T> = {
  /** The path of what the operation concerns. Default: the path of its resource. */
  readonly target?: string;
  /** Changes that are no rows of the replicated state. */
  readonly changes?: (result: T) => readonly Change[];
};

export type RequestContext = {
  readonly format: Format | undefined;
  readonly address: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly cookie: string | undefined;
  readonly query: Form;
};

/** A check without problems must set `prepared`, which `run` gets. */
export type Checked<P = unknown> = { readonly problems: readonly Problem[]; readonly prepared?: P };

export type PreparedCall<S, V, P> = OperationCall<S, V> & { readonly prepared: P };

export type Outcome = {
  readonly json: Json | SharedJson;
  readonly headers?: Record<string, string>;
  /** With `f=html`, this takes precedence over `next`. */
  readonly seeOther?: string;
  /** With `f=html`, these replace `{name}` in `next`. */
  readonly names?: Readonly<Record<string, string>>;
  /** What the next page says about the outcome. Default: the title of the operation. */
  readonly notice?: Notice;
  /** A secret that only this answer has. With `f=html`, a page shows it, also if there is a `next`. */
  readonly shownOnce?: { readonly label: string; readonly value: string; readonly hint: string };
  /** The operation that a reader of `shownOnce` is likely to want next. */
  readonly nextStep?: NextStep;
  /** The page with `f=html`, if there is no `next`. */
  readonly view?: ViewOfForm<unknown>;
};

/** A button for an operation without required fields. The operation leads to `next`. */
export type NextStep = {
  readonly label: string;
  readonly path: readonly string[];
  readonly next: readonly string[];
};

/** A sentence about what has happened, and a link to what it is about, with its path in the tree. */
export type Notice = { readonly text: string; readonly link?: NoticeLink };

export type NoticeLink = { readonly name: string; readonly path: readonly string[] };

/** The data of a resource as a file, with f=csv. */
export type CsvExport<S = unknown, V = never> = {
  readonly fileName: string;
  readonly header: readonly string[];
  readonly rows: (call: Call<S, V>) => AsyncIterable<CsvRow>;
};

export type CsvRow = readonly (string | number | null)[];

/**
 * `V` is the type of the values of the fields, `J` that of the JSON that `read` returns and `P` that of the JSON that
 * the page gets of it.
 */
type ResourceOf<S, V, J, P = J> = {
  readonly title: string;
  readonly description: string;
  /** Default: administrator. */
  readonly access: Access;
  readonly duringJob: 'open' | 'closed';
  readonly fields: Fields;
  readonly answer: AnswerSchema;
  readonly read: (call: Call<S, V>) => J | SharedJson | Promise<J | SharedJson>;
  readonly csv: CsvExport<S, V> | undefined;
  readonly onPost: Operation<S> | undefined;
  /** Its page. Without a view, `page` must lead to another one. */
  readonly view: View<S, P> | undefined;
  /** The operation whose form the page shows. Without one: that of `onPost`. The view then gets no JSON. */
  readonly form: string | undefined;
  /** The operations that the page lists now: not those that would be refused. */
  readonly isOffered: (subject: S, operation: string) => boolean;
  /** Whether something on the page is in progress: browsers without scripts then reload the page. */
  readonly isInProgress: (subject: S) => boolean;
  readonly titleOf: (subject: S, query?: URLSearchParams) => string;
  /** The path of the page that readers use instead. `beneath` is the rest of the path that they have asked for. */
  readonly page: (subject: S, beneath: readonly string[], caller: Caller) => readonly string[] | undefined;
  readonly resources: Readonly<Record<string, Resource<S>>>;
  readonly operations: Readonly<Record<string, Operation<S>>>;
  /** Children whose names are data. */
  readonly items: readonly Items<S>[];
};

export type Resource<S = unknown> = ResourceOf<S, never, unknown, never>;

/** With an unknown schema, any JSON. */
type JsonOf<A extends AnswerSchema> = AnswerSchema extends A ? Json : AnswerOf<A>;

/** What a description must say. The rest has a default. */
type Described<T, K extends keyof T> = Pick<T, K> & Partial<T>;

export type View<S, J = unknown> = (context: PageContext<S, J>) => Html | Promise<Html>;

export type PageContext<S, J = unknown> = {
  readonly subject: S;
  readonly json: J;
  readonly caller: Caller;
  readonly query: URLSearchParams;
  /** Empty if the browser has no session. */
  readonly formToken: string;
  /** Operations that write are refused now, except those that declare otherwise. */
  readonly isReadOnly: boolean;
  readonly now: number;
  /** The address of this page with its query, to return to it. */
  readonly address: string;
  readonly here: (...segments: readonly string[]) => string;
  /** From the root of the tree; `here` starts at this page. */
  readonly href: (...segments: readonly string[]) => string;
};

/** Texts for a field, or with labels the only values that its form accepts. */
export type Suggestions = Readonly<Record<string, readonly string[] | readonly Option[]>>;

export type Option = { readonly value: string; readonly label: string };

export type Entered = Readonly<Record<string, string | undefined>>;

/** Why a form was refused. */
export type FormError = {
  readonly message: string;
  readonly details: readonly string[];
  readonly problems: readonly Problem[];
};

export type FormPage<S = unknown> = PageContext<S> & {
  readonly entered: Entered;
  readonly error: FormError | undefined;
};

/** A page for what was entered. Undefined: the page without a view. */
type ViewOfForm<S> = (page: FormPage<S>) => Promise<Html | undefined> | undefined;

/** `V` is the type of the values of the fields, `C` that of what `check` prepares and `P` that of what `run` gets of it. */
type OperationOf<S, V, C, P = C> = {
  readonly title: string;
  /** The title of the page of its form. */
  readonly titleOf: (entered: Entered) => string;
  readonly description: string;
  /** Default: administrator. */
  readonly access: Access;
  /** Default: writes. */
  readonly effect: 'reads' | 'writes';
  /** Whether the audit trail records the requests. Default: those that write. */
  readonly isAudited: boolean;
  readonly whileReadOnly: 'refused' | 'allowed';
  readonly duringJob: 'open' | 'closed';
  readonly fields: Fields;
  readonly answer: AnswerSchema;
  /** The values that the form shows at first. */
  readonly present: (subject: S) => Readonly<Record<string, string>>;
  /** Values that stay as they are if the form does not change them: choices whose present value must not be sent. */
  readonly unchanged: (subject: S) => Readonly<Record<string, string>>;
  /** What the operation affects now, for the page of its form. `entered` is what the link to the page fills in. */
  readonly warning: (subject: S, entered: Entered) => string | undefined | Promise<string | undefined>;
  /** What the form offers for a text, by the name of the field. */
  readonly suggest: (subject: S, caller: Caller) => Suggestions;
  /** Whether the operation removes something. The page of its form warns then. */
  readonly isDestructive: boolean;
  /** Whether a caller with a key is refused: a key that has leaked must not outlive its deletion. */
  readonly refusesKeys: ((call: Call<S, Partial<V>>) => boolean) | undefined;
  /** Throws for a request that is refused before its fields are read. */
  readonly guard: (request: RequestContext) => void;
  /** Gets only the fields that could be read. */
  readonly check: ((call: Call<S, Partial<V>>) => Checked<C> | Promise<Checked<C>>) | undefined;
  /** Who calls an operation that needs no token. Undefined: nobody is known, so the audit trail records nothing. */
  readonly actor: ((call: Call<S, Partial<V>>) => Actor | undefined | Promise<Actor | undefined>) | undefined;
  /** `elsewhere`: other pages have a button for it, or its view is the form. */
  readonly form: 'derived' | 'sign-in' | 'elsewhere';
  readonly view: ViewOfForm<S>;
  /** For the OpenAPI document: the errors that do not follow from the other properties. */
  readonly refusals: readonly ErrorKind[];
  readonly run: (call: PreparedCall<S, V, P>) => Outcome | Promise<Outcome>;
};

export type Operation<S = unknown> = OperationOf<S, never, unknown, never>;

export type Items<S = unknown> = {
  readonly param: string;
  /** The names of its parts, which dots join. */
  readonly parts?: readonly string[];
  /** Required where two kinds of items lie beneath one resource. */
  readonly pattern?: RegExp;
  /** Also throws a not-found error when the caller may not see the item. */
  readonly find: (subject: S, segment: string, caller: Caller) => unknown;
  readonly resource: Resource;
};

export function resource<
  S,
  F extends Fields = Record<string, Field<never>>,
  A extends AnswerSchema = AnswerSchema,
>(
  described: Described<ResourceOf<S, Values<F>, JsonOf<A>>, 'title' | 'description' | 'answer' | 'read'> & {
    answer: A;
    fields?: F;
  },
): Resource<S> {
  return {
    access: 'administrator',
    duringJob: 'open',
    fields: {},
    csv: undefined,
    onPost: undefined,
    view: undefined,
    form: undefined,
    isOffered: () => true,
    isInProgress: () => false,
    titleOf: () => described.title,
    page: () => undefined,
    resources: {},
    operations: {},
    items: [],
    ...described,
  };
}

export function folder<S>(
  described: Described<
    Pick<Resource<S>, 'title' | 'description' | 'access' | 'page'>,
    'title' | 'description'
  >,
  resources: Record<string, Resource<S>>,
): Resource<S> {
  return resource({
    ...described,
    resources,
    answer: resourceListAnswer,
    read: () => ({ resources: Object.keys(resources).sort() }),
  });
}

export function operation<S, F extends Fields = Fields, P = undefined>(
  described: Described<OperationOf<S, Values<F>, P>, 'title' | 'description' | 'run'> & { fields?: F },
): Operation<S> {
  return {
    titleOf: () => described.title,
    access: 'administrator',
    effect: 'writes',
    isAudited: described.effect !== 'reads',
    whileReadOnly: 'refused',
    duringJob: 'open',
    fields: {},
    answer: successAnswer,
    present: () => ({}),
    unchanged: () => ({}),
    warning: () => undefined,
    suggest: () => ({}),
    isDestructive: false,
    refusesKeys: undefined,
    guard: () => undefined,
    check: undefined,
    actor: undefined,
    form: 'derived',
    view: () => undefined,
    refusals: [],
    ...described,
  };
}

export function items<S, T>(described: {
  param: string;
  parts?: readonly string[];
  pattern?: RegExp;
  find: (subject: S, segment: string, caller: Caller) => T | Promise<T>;
  resource: Resource<T>;
}): Items<S> {
  return described as unknown as Items<S>;
}

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

/** Success with what else the answer has, and the sentence that a page shows about it. */
export function succeeded(
  text: string,
  link?: NoticeLink,
  json: Readonly<Record<string, Json>> = {},
): Outcome {
  return { json: { status: 'success', ...json }, notice: link ? { text, link } : { text } };
}

export type Entry = {
  readonly route: string;
  readonly items: readonly Items[];
  readonly resource: Resource;
  readonly operation: Operation | undefined;
};

export function accessOf({ operation, resource }: Entry): Access {
  return (operation ?? resource).access;
}

export function answerOf({ operation, resource }: Entry): AnswerSchema {
  return (operation ?? resource).answer;
}

export function fieldsOf({ operation, resource }: Entry): Fields {
  return (operation ?? resource).fields;
}

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

/** The path as OpenAPI writes it, such as `/admin/services/{serviceName}.{type}/edit`. */
export function pathTemplate(prefix: string, { route, items }: Entry): string {
  let passed = 0;
  const segments = route.split('/').map((segment) => {
    if (!segment.startsWith('{')) return segment;
    const item = items[passed];
    passed += 1;
    return item
      ? partsOf(item)
          .map((part) => `{${part}}`)
          .join('.')
      : segment;
  });
  return [prefix, ...segments].join('/').replace(/\/$/, '') || '/';
}

export function partsOf({ param, parts }: Items): readonly string[] {
  return parts ?? [param];
}
