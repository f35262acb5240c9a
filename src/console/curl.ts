// The curl command of a page. Its token is a shell variable, never a real token.
import { needsToken } from '../lib/caller.ts';
import type { Operation } from '../rest/resource.ts';
import type { Control, Field } from '../rest/fields.ts';

export function readCommand(address: string): string {
  return `curl -H "Authorization: Bearer $TOKEN" '${address}${address.includes('?') ? '&' : '?'}f=pjson'`;
}

export function postCommand(
  address: string,
  { fields, access }: Pick<Operation, 'fields' | 'access'>,
  entered: Readonly<Record<string, string | undefined>>,
): string {
  const shown = Object.entries(fields).filter(
    ([name, field]) => name !== 'next' && (field.required || (entered[name] ?? '') !== ''),
  );
  const hasFile = shown.some(([, field]) => field.control.kind === 'file');
  const parts = shown.map(([name, field]) => partOf(name, field, entered[name] ?? '', hasFile));
  const body = parts.length > 0 ? parts : ["-d ''"];
  const header = !needsToken(access) ? [] : ['-H "Authorization: Bearer $TOKEN"'];
  return [['curl', ...header, `'${address}'`].join(' '), ...body].join(' \\\n  ');
}

const maxShownLength = 4096;

function partOf(name: string, { control }: Field<unknown>, entered: string, isMultipart: boolean): string {
  if (control.kind === 'file') return `-F ${name}=@FILE`;
  // Quoting and escaping a long text takes long.
  const isShown = entered !== '' && entered.length <= maxShownLength;
  const value = isSecret(control) ? `"$${name.toUpperCase()}"` : quote(isShown ? entered : '…');
  return `${isMultipart ? '--form-string' : '--data-urlencode'} ${name}=${value}`;
}

function isSecret(control: Control): boolean {
  return control.kind === 'text' && control.secret === true;
}

/** A word of a shell command. */
export function quote(text: string): string {
  return /^[\w./:,@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
