// The label of a field in a form: its own, or its name in words. And problems with fields as sentences.
import { type Problem, formatProblem } from '../lib/errors.ts';
import { type FieldMeta, type Fields, metaOf } from '../rest/fields.ts';

const abbreviations: Readonly<Record<string, string>> = { url: 'URL', id: 'id', ip: 'IP', json: 'JSON' };

export function labelOf(name: string, { label }: FieldMeta): string {
  if (label !== undefined) return label;
  // `notificationAttempts` → `Notification attempts`.
  const words = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').split(' ');
  const text = words.map((word) => abbreviations[word.toLowerCase()] ?? word.toLowerCase()).join(' ');
  return capitalise(text);
}

/** The subject of most messages is the field: `must be true or false.` */
const verb = /^(?:is|are|must|may|has|have|was|were|can|cannot|does|do|needs?|names?)\b/;

/** `hookUrl`, `must be …` → `Receiver address must be …`. */
export function sentenceOf(problem: Problem, fields: Fields): string {
  const { field: name = '', message } = problem;
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (!field) return formatProblem(problem);
  const label = labelOf(name, metaOf(field));
  if (verb.test(message)) return `${label} ${message}`;
  const sentence = capitaliseWord(message);
  return sentence === message ? `${label}: ${message}` : sentence;
}

/** The message may begin with a name, which stays as it is. */
export function capitaliseWord(message: string): string {
  return /^[a-z]+ /.test(message) ? capitalise(message) : message;
}

export function capitalise(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
