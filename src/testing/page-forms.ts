// The forms of the page at /control: what each does, and the rule that a form describes.
import type { FormError } from '../console/form.ts';
import { sentenceOf } from '../console/labels.ts';
import { type ServiceError, invalidField } from '../lib/errors.ts';
import { formatNumber } from '../lib/format.ts';
import { describeField } from '../rest/field-description.ts';
import type { ControlledServer } from './controlled-server.ts';
import { maxAdvanceMs, parseInput } from './input.ts';
import { ruleFields, ruleSchemaFor } from './rule.ts';

const forms = ['reset', 'freeze', 'release', 'advance', 'rule', 'remove', 'clear'] as const;

export type PageForm = (typeof forms)[number];

export const units: Readonly<Record<string, number>> = {
  seconds: 1000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
};

export const addRule = {
  title: 'Add rule',
  access: 'anyone',
  effect: 'reads',
  whileReadOnly: 'allowed',
  isDestructive: false,
  fields: { ...ruleFields.match, ...ruleFields.respond, times: ruleFields.times },
} as const;

export function pageForm(name: string | null): PageForm {
  const form = forms.find((one) => one === name);
  if (!form) throw invalidField('do', `must be one of ${forms.join(', ')}.`);
  return form;
}

/** Returns what the page then says. */
export async function runForm(
  server: ControlledServer,
  form: PageForm,
  given: URLSearchParams,
): Promise<string> {
  const { clock, rules, journal } = server;
  switch (form) {
    case 'reset':
      await server.reset();
      return 'The server is in the state after its start.';
    case 'freeze':
    case 'release':
      clock.setFrozen(form === 'freeze');
      return form === 'freeze' ? 'The clock is frozen.' : 'The clock runs.';
    case 'advance': {
      const amount = given.get('amount') ?? '';
      const unit = given.get('unit') ?? '';
      const ms = /^\d{1,9}$/.test(amount) ? Number(amount) * (units[unit] ?? NaN) : NaN;
      if (!(ms <= maxAdvanceMs))
        throw invalidField(
          'amount',
          `must be a number of ${Object.keys(units).join(', ')}, at most ten years.`,
        );
      await server.advanceTo(clock.now() + ms);
      return `The clock has advanced by ${formatNumber(Number(amount))} ${unit}.`;
    }
    case 'rule':
      rules.add(
        parseInput(
          ruleSchemaFor(() => server.routes),
          ruleOf(given),
        ),
      );
      return 'The rule is active.';
    case 'remove': {
      const id = given.get('id');
      if (id === null) rules.clear();
      else rules.remove(id);
      return id === null ? 'The rules are deleted.' : 'The rule is deleted.';
    }
    case 'clear':
      journal.clear();
      return 'The journal is empty.';
  }
}

/** The rule that a form describes. What is blank is absent. */
function ruleOf(given: URLSearchParams): object {
  const valuesOf = (fields: Readonly<Record<string, Parameters<typeof describeField>[0]>>) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, field]) => {
        const text = (given.get(name) ?? '').trim();
        return text === '' ? [] : [[name, valueOf(describeField(field).schema.type, text)]];
      }),
    );
  const { match, respond, times } = ruleFields;
  return { match: valuesOf(match), respond: valuesOf(respond), ...valuesOf({ times }) };
}

function valueOf(type: string | undefined, text: string): unknown {
  if (type === 'integer') return Number(text);
  return type === 'boolean' ? text === 'true' : text;
}

/** What the page shows of a refusal. A problem with `match.route` is one with the field `route`. */
export function formErrorOf({ message, problems }: ServiceError): FormError {
  const own = problems.map(({ field = '', message: text }) => ({
    field: field.replace(/^.*\./, ''),
    message: text,
  }));
  return { message, details: own.map((problem) => sentenceOf(problem, addRule.fields)), problems: own };
}
