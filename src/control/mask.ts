// Masks secrets in what the journal keeps: passwords, tokens, cookies, keys and the values of custom headers.
export const mask = '***';

/** Names of fields and headers whose values are secrets. */
const secretName = /^(?!expir|max)(.*(password|token|secret|signature|authorization|cookie)|.*key)s?$/i;
const headersName = /headers$/i;

const isSecret = (name: string) => secretName.test(name) || headersName.test(name);

type GivenHeaders = Readonly<Record<string, string | number | readonly string[] | undefined>>;

export type Headers = Readonly<Record<string, string | readonly string[]>>;

export function maskHeaders(headers: GivenHeaders): Headers {
  const masked: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const texts = (Array.isArray(value) ? value : [value]).map((text) =>
      isSecret(name) ? mask : maskAddress(String(text)),
    );
    masked[name] = Array.isArray(value) ? texts : (texts[0] ?? '');
  }
  return masked;
}

/** Masks the query of an address. */
export function maskAddress(address: string): string {
  const start = address.indexOf('?');
  return start < 0 ? address : `${address.slice(0, start + 1)}${maskPairs(address.slice(start + 1))}`;
}

/** The form of the body is recognized by its content, because clients may send a wrong content type. It may be cut at its end. */
export function maskBody(body: string): string {
  if (/^[^\s=<>{}"]+=/.test(body)) return maskPairs(body);
  if (body.startsWith('--')) return maskParts(body);
  return [maskJson, maskMarkup, maskKnownForms].reduce((text, apply) => apply(text), body);
}

/** Pairs of a query or a form. */
function maskPairs(text: string): string {
  return text
    .split('&')
    .map((pair) => {
      const [name = ''] = pair.split('=', 1);
      return isSecret(decode(name)) && pair.includes('=') ? `${name}=${mask}` : pair;
    })
    .join('&');
}

function decode(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' ')).trim();
  } catch {
    return name;
  }
}

/** Parts of a multipart form. */
function maskParts(text: string): string {
  const part = /(name="?([^";\r\n]+)"?(?:[^\r\n]*\r?\n)+?\r?\n)([\s\S]*?)(?=\r?\n--|$)/g;
  return text.replace(part, (whole: string, head: string, name: string) =>
    isSecret(name) ? `${head}${mask}` : whole,
  );
}

function maskJson(text: string): string {
  const string = '"((?:[^"\\\\]|\\\\.)*)"?';
  return text
    .replace(new RegExp(`(${string}\\s*:\\s*)${string}`, 'g'), (whole: string, head: string, name: string) =>
      isSecret(name) ? `${head}"${mask}"` : whole,
    )
    .replace(
      /("(?:[^"\\]|\\.)*headers"\s*:\s*)(\{[^}]*\}?|\[[^\]]*\]?)/gi,
      (_whole, head: string, values: string) => {
        const inner = values.replace(
          /("((?:[^"\\]|\\.)*)"\s*:\s*)"(?:[^"\\]|\\.)*"?/g,
          (pair: string, before: string, name: string) => (name === 'name' ? pair : `${before}"${mask}"`),
        );
        return `${head}${inner}`;
      },
    );
}

/** Hidden inputs of pages. */
function maskMarkup(text: string): string {
  return text.replace(
    /(<input[^>]*\sname="([^"]*)"[^>]*\svalue=")([^"]*)/gi,
    (whole: string, head: string, name: string) => (isSecret(name) ? `${head}${mask}` : whole),
  );
}

/** Signature keys and form tokens are recognized anywhere. */
function maskKnownForms(text: string): string {
  return text.replace(/\b(whsec_|form_)[A-Za-z0-9+/=_-]{16,}/g, `$1${mask}`);
}
