// The tree of resources and operations, which the features describe. Routes, checks, pages, curl commands and the
// OpenAPI document are derived from it.
import type { Access, Caller } from '../lib/caller.ts';
import { refuseInvalid } from '../lib/errors.ts';
import type { Json, SharedJson } from '../lib/json.ts';
import { type AnswerOf, type AnswerSchema, resourceListAnswer } from './answer.ts';
import type { Call } from './call.ts';
import { type Field, type Fields, type Values, readFields } from './fields.ts';
import type { Form } from './form.ts';
import type { Operation } from './operation.ts';
import type { Outcome } from './outcome.ts';
import type { PageContext, View } from './view.ts';

/** The data of a resource as a file, with f=csv. */
export type CsvExport = {
  readonly fileName: string;
  readonly header: readonly string[];
  readonly rows: AsyncIterable<CsvRow>;
};

export type CsvRow = readonly (string | number | null)[];

export type Resource<S = unknown> = {
  readonly title: string;
  readonly description: string;
  /** Default: administrator. */
  readonly access: Access;
  readonly duringJob: 'open' | 'closed';
  readonly fields: Fields;
  readonly answer: AnswerSchema;
  /** Throws if a field is not acceptable. */
  readonly read: (callWith: CallWith<S>, form: Form) => Answered | Promise<Answered>;
  readonly csv: ((callWith: CallWith<S>, form: Form) => CsvExport) | undefined;
  readonly onPost: Operation<S> | undefined;
  /** Its page. Without a view, `page` must lead to another one. */
  readonly view: View<S> | undefined;
  /** The operation whose form the page shows. Without one: that of `onPost`. The view then gets no JSON. */
  readonly form: string | undefined;
  /** The operations and resources that the page lists now: not those that would be refused, or are for programs. */
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

type Answered = Outcome['json'];

/** The call with the values of the fields. */
type CallWith<S> = <V>(values: V) => Call<S, V>;

/** `V` is the type of the values of the fields, and `J` that of the JSON that `read` returns and the page gets. */
type Behavior<S, V, J> = {
  readonly read: (call: Call<S, V>) => J | SharedJson | Promise<J | SharedJson>;
  readonly csv?: Omit<CsvExport, 'rows'> & { readonly rows: (call: Call<S, V>) => AsyncIterable<CsvRow> };
  readonly view?: View<S, J>;
};

/** With an unknown schema, any JSON. */
type JsonOf<A extends AnswerSchema> = AnswerSchema extends A ? Json : AnswerOf<A>;

/** What a description must say. The rest has a default. */
type Described<T, K extends keyof T> = Pick<T, K> & Partial<T>;

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
  described: Described<
    Omit<Resource<S>, 'read' | 'csv' | 'view' | 'fields' | 'answer'>,
    'title' | 'description'
  > &
    Behavior<S, Values<F>, JsonOf<A>> & { readonly answer: A; readonly fields?: F },
): Resource<S> {
  const { read, csv, view, ...shown } = described;
  const fields = described.fields ?? ({} as F);
  const openCall = (callWith: CallWith<S>, form: Form) => {
    const { values, problems } = readFields(fields, form);
    refuseInvalid(problems);
    return callWith(values as Values<F>);
  };
  return {
    access: 'administrator',
    duringJob: 'open',
    onPost: undefined,
    form: undefined,
    isOffered: () => true,
    isInProgress: () => false,
    titleOf: () => described.title,
    page: () => undefined,
    resources: {},
    operations: {},
    items: [],
    ...shown,
    fields,
    read: (callWith, form) => read(openCall(callWith, form)) as Answered | Promise<Answered>,
    csv: csv && ((callWith, form) => ({ ...csv, rows: csv.rows(openCall(callWith, form)) })),
    // The JSON is what `read` has returned.
    view: view && ((context) => view(context as PageContext<S, JsonOf<A>>)),
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

export function items<S, T>(described: {
  param: string;
  parts?: readonly string[];
  pattern?: RegExp;
  find: (subject: S, segment: string, caller: Caller) => T | Promise<T>;
  resource: Resource<T>;
}): Items<S> {
  return described as unknown as Items<S>;
}
