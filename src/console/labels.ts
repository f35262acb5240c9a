// The label of a field in a form: its own, or its name in words.
import type { FieldMeta } from '../rest/fields.ts';

const abbreviations: Readonly<Record<string, string>> = { url: 'URL', id: 'id', ip: 'IP', json: 'JSON' };

export function labelOf(name: string, { label }: FieldMeta): string {
  return label ?? inWords(name);
}

/** `notificationAttempts` → `Notification attempts`. */
function inWords(name: string): string {
  const words = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').split(' ');
  const text = words.map((word) => abbreviations[word.toLowerCase()] ?? word.toLowerCase()).join(' ');
  return capitalise(text);
}

export function capitalise(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
