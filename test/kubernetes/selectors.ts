// Matches objects with label selectors and field selectors.
import { type KubeObject, type LabelSelector, isFields } from './objects.ts';
import { badRequest } from './status-error.ts';

type Labels = Record<string, string> | undefined;

const operators: Record<string, (value: string | undefined, values: string[]) => boolean> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
};

export function matches(selector: LabelSelector, labels: Labels): boolean {
  const equal = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels?.[key] === value);
  return (
    equal &&
    (selector.matchExpressions ?? []).every(({ key, operator, values }) =>
      operators[operator]?.(labels?.[key], values ?? []),
    )
  );
}

/** Parses a query: `app=web,tier in (a, b),!old`. */
export function parseLabelSelector(text: string): LabelSelector {
  const parts = text.match(/(?:[^,(]|\([^)]*\))+/g) ?? [];
  const matchExpressions = parts.map((part) => {
    const [, bang, key = '', sign, value = '', set, inside = ''] =
      /^\s*(!?)\s*([\w./-]+)\s*(?:(==|=|!=)\s*([\w.-]*)|\s(in|notin)\s*\(([^)]*)\))?\s*$/.exec(part) ?? [];
    if (key === '') throw badRequest(`unable to parse requirement: ${part}`);
    if (set !== undefined) {
      const values = inside.split(',').map((one) => one.trim());
      return { key, operator: set === 'in' ? 'In' : 'NotIn', values };
    }
    if (sign !== undefined) return { key, operator: sign === '!=' ? 'NotIn' : 'In', values: [value] };
    return { key, operator: bang === '!' ? 'DoesNotExist' : 'Exists' };
  });
  return { matchExpressions };
}

/** `text` is a query: `metadata.name=web,status.phase!=Running`. */
export function matchesFields(text: string, object: KubeObject): boolean {
  return text
    .split(',')
    .filter((part) => part !== '')
    .every((part) => {
      const [, path = '', sign, wanted] = /^(.+?)(!=|==|=)(.*)$/.exec(part) ?? [];
      let value: unknown = object;
      for (const step of path.split('.')) value = isFields(value) ? value[step] : undefined;
      return ((value ?? '') === wanted) === (sign !== '!=');
    });
}
