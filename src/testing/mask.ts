// Masks secrets in what the journal keeps: passwords, tokens, cookies, keys and the values of custom headers.
import { escapeHtml } from '../lib/html.ts';
import type { JournalMessage } from './control-client.ts';

const mask = '***';

/** Names of fields and headers whose values are secrets. */
const secretName = /^(?!expir|max)(.*(password|token|secret|signature|authorization|cookie)|.*key)s?$/i;
const headersName = /headers$/i;

const isSecret = (name: string) => secretName.test(name) || headersName.test(name);

type GivenHeaders = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Shorter values occur by chance in other texts. Passwords and keys have at least this length. */
const minSecretLength = 8;

/**
 * Masks the two messages of one exchange. A secret that was found once is masked wherever it appears again, such as
 * in a page.
 */
export class ExchangeMask {
  readonly #secrets = new Set<string>();

  headers(headers: GivenHeaders): JournalMessage['headers'] {
    const masked: Record<string, string | readonly string[]> = {};
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined) continue;
      const texts = (Array.isArray(value) ? value : [value]).map((text) => this.#header(name, String(text)));
      masked[name] = Array.isArray(value) ? texts : (texts[0] ?? '');
    }
    return masked;
  }

  /** Masks the query of an address. */
  address(address: string): string {
    const start = address.indexOf('?');
    return start < 0 ? address : `${address.slice(0, start + 1)}${this.#pairs(address.slice(start + 1))}`;
  }

  /**
   * The form of the body is recognized by its content, because clients may send a wrong content type. It may be cut
   * at its end.
   */
  body(body: string): string {
    if (/^[^\s=<>{}"]+=/.test(body)) return this.#pairs(body);
    if (body.startsWith('--')) return this.#parts(body);
    return this.#known(maskKnownForms(this.#markup(this.#json(body))));
  }

  #header(name: string, value: string): string {
    if (!isSecret(name)) return this.address(value);
    // A scheme and a token, or the names and values of cookies.
    for (const part of value.split(/[\s;,=]+/)) this.#remember(part);
    return mask;
  }

  #remember(value: string): string {
    if (value.startsWith('{')) for (const text of textsOf(value)) this.#remember(text);
    else if (value.length >= minSecretLength) this.#secrets.add(value);
    return mask;
  }

  #known(text: string): string {
    return [...this.#secrets]
      .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), escapeHtml(secret)])
      .reduce((masked, secret) => masked.replaceAll(secret, mask), text);
  }

  /** Pairs of a query or a form. */
  #pairs(text: string): string {
    return text
      .split('&')
      .map((pair) => {
        const [name = ''] = pair.split('=', 1);
        if (!isSecret(decode(name).trim()) || !pair.includes('=')) return pair;
        return `${name}=${this.#remember(decode(pair.slice(name.length + 1)))}`;
      })
      .join('&');
  }

  /** Parts of a multipart form. */
  #parts(text: string): string {
    const part = /(name="?([^";\r\n]+)"?(?:[^\r\n]*\r?\n)+?\r?\n)([\s\S]*?)(?=\r?\n--|$)/g;
    return text.replace(part, (whole: string, head: string, name: string, value: string) =>
      isSecret(name) ? `${head}${this.#remember(value)}` : whole,
    );
  }

  #json(text: string): string {
    return text
      .replace(jsonPair, (whole: string, head: string, name: string, value: string) =>
        isSecret(name) ? `${head}"${this.#remember(unescapeJson(value))}"` : whole,
      )
      .replace(
        /("(?:[^"\\]|\\.)*headers"\s*:\s*)(\{[^}]*\}?|\[[^\]]*\]?)/gi,
        (_whole, head: string, values: string) => {
          const inner = values.replace(jsonPair, (pair: string, before: string, name: string) =>
            name === 'name' ? pair : `${before}"${mask}"`,
          );
          return `${head}${inner}`;
        },
      );
  }

  /** Elements of XML, inputs of pages, and the terms of their lists. */
  #markup(text: string): string {
    return text
      .replace(
        /(<(?:[\w.-]+:)?([\w.-]+)(?:\s[^<>]*)?>)(\s*(?:<!\[CDATA\[[\s\S]*?(?:\]\]>|$)|[^<]+))/g,
        (whole: string, head: string, name: string, value: string) =>
          isSecret(name) && value.trim() !== '' ? `${head}${this.#remember(xmlText(value))}` : whole,
      )
      .replace(
        /(<input[^>]*\sname="([^"]*)"[^>]*\svalue=")([^"]*)/gi,
        (whole: string, head: string, name: string) => (isSecret(name) ? `${head}${mask}` : whole),
      )
      .replace(
        /(<textarea[^>]*\sname="([^"]*)"[^>]*>|<dt>([^<]*)<\/dt>\s*<dd>)([^<]*)/gi,
        (whole: string, head: string, name: string | undefined, term: string | undefined, value: string) =>
          isSecret(name ?? term ?? '') && value.trim() !== '' ? `${head}${mask}` : whole,
      );
  }
}

/** The head of the pair, its name and its value. */
const jsonPair = /("((?:[^"\\]|\\.)*)"\s*:\s*)"((?:[^"\\]|\\.)*)"?/g;

function decode(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}

function unescapeJson(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text;
  }
}

function xmlText(value: string): string {
  return value.trim().replace(/^<!\[CDATA\[([\s\S]*?)(?:\]\]>)?$/, '$1');
}

/** The texts in a JSON object, such as the values of custom headers. */
function textsOf(json: string): string[] {
  try {
    const value = JSON.parse(json) as unknown;
    return Object.values(value as object).filter((text) => typeof text === 'string');
  } catch {
    return [];
  }
}

/** Signature keys and form tokens are recognized anywhere. */
function maskKnownForms(text: string): string {
  return text.replace(/\b(whsec_|form_)[A-Za-z0-9+/=_-]{16,}/g, `$1${mask}`);
}
