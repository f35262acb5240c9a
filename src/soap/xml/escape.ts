// Escapes text and attribute values for XML, so that a reader gets back the same text.

export function escapeText(s: string): string {
  return /[&<>\r]/.test(s) ? s.replace(/[&<>\r]/g, escapeCharacter) : s;
}

export function escapeAttribute(s: string): string {
  return /[&<>"\t\n\r]/.test(s) ? s.replace(/[&<>"\t\n\r]/g, escapeCharacter) : s;
}

function escapeCharacter(c: string): string {
  if (c === '&') return '&amp;';
  if (c === '<') return '&lt;';
  if (c === '>') return '&gt;';
  return c === '"' ? '&quot;' : `&#${c.charCodeAt(0)};`;
}
