// The curl command of a page. Its token is a shell variable, never a real token.
import { needsToken } from '../lib/caller.ts';
import { type FieldDescription, describeField } from '../rest/fields.ts';
import type { Operation } from '../rest/resource.ts';

export function readCommand(address: string): string {
  return `curl -H "Authorization: Bearer $TOKEN" '${address}${address.includes('?') ? '&' : '?'}f=pjson'`;
}

export function postCommand(
  address: string,
  { fields, access }: Pick<Operation, 'fields' | 'access'>,
  entered: Readonly<Record<string, string | undefined>>,
): string {
  const shown = Object.entries(fields)
    .map(([name, field]) => [name, describeField(field)] as const)
    .filter(([name, { control }]) => name !== 'next' && control !== 'hidden')
    .filter(([name, field]) => field.isRequired || (entered[name] ?? '') !== '');
  const hasFile = shown.some(([, { control }]) => control === 'file');
  const parts = shown.map(([name, field]) => partOf(name, field, entered[name] ?? '', hasFile));
  const body = parts.length > 0 ? parts : ["-d ''"];
  const header = !needsToken(access) ? [] : ['-H "Authorization: Bearer $TOKEN"'];
  return [['curl', ...header, `'${address}'`].join(' '), ...body].join(' \\\n  ');
}

const maxShownLength = 4096;

/** A terminal acts on these in a paste, also inside quotes. */
const controls = /[^\P{Cc}\n]/u;

function partOf(name: string, { control }: FieldDescription, entered: string, isMultipart: boolean): string {
  if (control === 'file') return `-F ${name}=@FILE`;
  // Browsers send line breaks in this way.
  const text = entered.replaceAll('\r\n', '\n');
  // Quoting and escaping a long text takes long.
  const isShown = text !== '' && text.length <= maxShownLength && !controls.test(text);
  const value = control === 'password' ? `"$${name.toUpperCase()}"` : quote(isShown ? text : '…');
  return `${isMultipart ? '--form-string' : '--data-urlencode'} ${name}=${value}`;
}

/** A word of a shell command. */
function quote(text: string): string {
  return /^[\w./:,@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
