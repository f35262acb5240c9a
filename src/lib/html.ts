// html`…` builds markup and escapes every value in it, except nested markup.

export type Html = { readonly markup: string };

type Part = string | number | boolean | Html | null | undefined | readonly Part[];

export function html(strings: TemplateStringsArray, ...values: Part[]): Html {
  return { markup: strings.reduce((all, string, index) => all + render(values[index - 1]) + string) };
}

function render(value: Part): string {
  if (value === null || value === undefined || value === false) return '';
  if (Array.isArray(value)) return (value as Part[]).map(render).join('');
  if (typeof value === 'object') return (value as Html).markup;
  return escapeHtml(String(value));
}

const references: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => references[character] ?? character);
}
