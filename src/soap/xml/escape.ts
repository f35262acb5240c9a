// Text and attribute values as XML carries them: whatever the reader then reads is what was written.

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
