// Operations, which the features describe. What the fields are and what `check` prepares is known only inside
// `operation`, so that `run` gets the types of its own description.
import type { Access, Caller } from '../lib/caller.ts';
import { type ErrorKind, refuseInvalid } from '../lib/errors.ts';
import type { Actor } from '../store/audit-entry.ts';
import { type AnswerSchema, successAnswer } from './answer.ts';
import type { Call, Checked, OperationCall, PreparedCall, RequestContext } from './call.ts';
import { type ClearableNames, type Fields, type Values, readFields, unusedFields } from './fields.ts';
import type { Form } from './form.ts';
import type { Outcome } from './outcome.ts';
import type { Entered, Suggestions, ViewOfForm } from './view.ts';

export type Operation<S = unknown> = {
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
  /** Throws for a request that is refused before its fields are read. */
  readonly guard: (request: RequestContext) => void;
  /** `elsewhere`: other pages have a button for it, or its view is the form. */
  readonly form: 'derived' | 'sign-in' | 'elsewhere';
  readonly view: ViewOfForm<S>;
  /** For the OpenAPI document: the errors that do not follow from the other properties. */
  readonly refusals: readonly ErrorKind[];
  readonly mayRefuseKeys: boolean;
  readonly open: (callWith: CallWith<S>, form: Form) => OpenedOperation;
};

/** The call with the values of the fields. */
export type CallWith<S> = <V>(values: V) => OperationCall<S, V>;

/** An operation whose fields are read. */
export type OpenedOperation = {
  readonly refusesKey: () => boolean;
  /** Throws if a field is not acceptable. */
  readonly check: () => Promise<CheckedOperation>;
};

export type CheckedOperation = {
  readonly actor: (() => Actor | undefined | Promise<Actor | undefined>) | undefined;
  /** The names of known fields that have no effect with the values of the others. */
  readonly unused: readonly string[];
  readonly run: (actor: Actor | undefined) => Outcome | Promise<Outcome>;
};

/** `V` is the type of the values of the fields, and `P` that of what `check` prepares for `run`. */
type Behavior<S, V, P> = {
  /** Whether a caller with a key is refused: a key that has leaked must not outlive its deletion. */
  readonly refusesKeys?: (call: Call<S, Partial<V>>) => boolean;
  /** Gets only the fields that could be read. */
  readonly check?: (call: Call<S, Partial<V>>) => Checked<P> | Promise<Checked<P>>;
  /** Who calls an operation that needs no token. Undefined: nobody is known, so the audit trail records nothing. */
  readonly actor?: (call: Call<S, Partial<V>>) => Actor | undefined | Promise<Actor | undefined>;
  readonly run: (call: PreparedCall<S, V, P>) => Outcome | Promise<Outcome>;
};

type Shown<S> = Omit<Operation<S>, 'title' | 'description' | 'fields' | 'present' | 'mayRefuseKeys' | 'open'>;

/** Must have every field that a blank text empties, so that sending the form unchanged empties nothing. */
type Present<S, F extends Fields> = (
  subject: S,
) => Readonly<Record<string, string>> & Readonly<Record<ClearableNames<F>, string>>;

type Presenting<S, F extends Fields> = [ClearableNames<F>] extends [never]
  ? { readonly present?: Present<S, F> }
  : { readonly present: Present<S, F> };

type Described<S, F extends Fields, P> = Pick<Operation<S>, 'title' | 'description'> &
  Partial<Shown<S>> &
  Presenting<S, F> &
  Behavior<S, Values<F>, P> & { readonly fields?: F };

export function operation<S, F extends Fields = Fields, P = undefined>(
  described: Described<S, F, P>,
): Operation<S> {
  const { refusesKeys, check, actor, run, ...shown } = described;
  const fields = described.fields ?? ({} as F);
  return {
    titleOf: () => described.title,
    access: 'administrator',
    effect: 'writes',
    isAudited: described.effect !== 'reads',
    whileReadOnly: 'refused',
    duringJob: 'open',
    answer: successAnswer,
    present: () => ({}),
    unchanged: () => ({}),
    warning: () => undefined,
    suggest: () => ({}),
    isDestructive: false,
    guard: () => undefined,
    form: 'derived',
    view: () => undefined,
    refusals: [],
    ...shown,
    fields,
    mayRefuseKeys: refusesKeys !== undefined,
    open(callWith, form) {
      const { values, problems } = readFields(fields, form);
      const call = callWith(values);
      return {
        refusesKey: () => refusesKeys?.(call) ?? false,
        async check() {
          const checked = await check?.(call);
          refuseInvalid(checked ? [...problems, ...checked.problems] : problems);
          return {
            actor: actor && (() => actor(call)),
            unused: unusedFields(fields, form, call),
            // Now the values are complete. A copy of the call would cost as much as reading the form.
            run: (acting) =>
              run(
                Object.assign(call, { prepared: checked?.prepared, actor: acting }) as PreparedCall<
                  S,
                  Values<F>,
                  P
                >,
              ),
          };
        },
      };
    },
  };
}
