// Masks secrets in what the journal keeps: passwords, tokens, cookies, keys, the values of custom headers and the
// queries of receivers.
import { SecretUrl, maskedValue as mask } from '../lib/audit-fields.ts';
import { escapeHtml } from '../lib/html.ts';
import type { JournalMessage } from './control-client.ts';
import { replaceInBody, replaceInPairs } from './body-fields.ts';

/** How the names of fields and headers end whose values are secrets. */
const secretEnds = [
  'password',
  'passwd',
  'pwd',
  'token',
  'secret',
  'signature',
  'authorization',
  'cookie',
  'key',
]
  .flatMap((end) => [end, `${end}s`])
  .concat('headers');

/** Many values may have the same name, so a longer one would take long to look at. It counts as secret. */
const maxNameLength = 256;

/** The name may have brackets, such as `password[]`. */
function isSecret(name: string): boolean {
  if (name.length > maxNameLength) return true;
  const words = name
    .trim()
    .toLowerCase()
    .split(/[[\]]+/);
  return words.some((word) => !/^(?:expir|max)/.test(word) && secretEnds.some((end) => word.endsWith(end)));
}

type GivenHeaders = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Shorter values occur by chance in other texts. Passwords and keys have at least this length. */
const minSecretLength = 8;
/** A longer value, or one more that begins like others, is masked only where its field gives it. */
const maxSecretLength = 1024;
const maxAlike = 4;

/**
 * Masks the two messages of one exchange. A secret that was found once is masked wherever it appears again, such as
 * in a page.
 */
export class ExchangeMask {
  /** By their first characters, so that the work does not grow with their number. */
  readonly #secrets = new Map<string, readonly string[]>();

  headers(headers: GivenHeaders): JournalMessage['headers'] {
    const masked: Record<string, string | readonly string[]> = {};
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined) continue;
      const texts = (Array.isArray(value) ? value : [value]).map((text) => this.#header(name, String(text)));
      masked[name] = Array.isArray(value) ? texts : (texts[0] ?? '');
    }
    return masked;
  }

  /** Masks the query of an address, and pairs that follow its path without a question mark. */
  address(address: string): string {
    const [path = ''] = address.split('?', 1);
    const query = address.slice(path.length);
    return (
      replaceInPairs(path, this.#field) + query.slice(0, 1) + replaceInPairs(query.slice(1), this.#field)
    );
  }

  body(body: string): string {
    return this.#known(maskKnownForms(replaceInBody(body, this.#field)));
  }

  #header(name: string, value: string): string {
    if (!isSecret(name)) return this.address(value);
    // A scheme and a token, or the names and values of cookies.
    for (const part of value.split(/[\s;,=]+/)) this.#remember(part);
    return mask;
  }

  readonly #field = (name: string, value: string): string => {
    if (isSecret(name)) return this.#remember(value);
    if (!name.toLowerCase().endsWith('hookurl')) return value;
    const { shown } = new SecretUrl(value);
    if (shown !== value) this.#remember(value.slice(value.search(/[?#]/) + 1));
    return shown;
  };

  #remember(value: string): string {
    const isObject = value.startsWith('{');
    if (isObject) for (const text of textsOf(value)) this.#remember(text);
    else if (value.length >= minSecretLength && value.length <= maxSecretLength)
      for (const form of [value, JSON.stringify(value).slice(1, -1), escapeHtml(value)]) this.#add(form);
    return mask;
  }

  /** The longest is first, because another may be its beginning. */
  #add(secret: string): void {
    const start = secret.slice(0, minSecretLength);
    const alike = this.#secrets.get(start) ?? [];
    if (alike.length === maxAlike || alike.includes(secret)) return;
    const sorted = [...alike, secret].sort((one, other) => other.length - one.length);
    this.#secrets.set(start, sorted);
  }

  #known(text: string): string {
    if (this.#secrets.size === 0) return text;
    let masked = '';
    let from = 0;
    for (let at = 0; at < text.length; at += 1) {
      const alike = this.#secrets.get(text.slice(at, at + minSecretLength));
      // `startsWith` would take twenty times as long if most characters agree.
      const secret = alike?.find((one) => one === text.slice(at, at + one.length));
      if (secret === undefined) continue;
      masked += text.slice(from, at) + mask;
      from = at + secret.length;
      at = from - 1;
    }
    return masked + text.slice(from);
  }
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

/** Signature keys, form tokens and keys of programs are recognized anywhere. */
function maskKnownForms(text: string): string {
  return text.replace(/\b(whsec_|form_|stw_)([A-Za-z0-9+/=_-]+)/g, (whole, kind: string, rest: string) =>
    rest.length < 16 ? whole : `${kind}${mask}`,
  );
}
