// Masks secrets in what the journal keeps: passwords, tokens, cookies, keys, the values of custom headers, the queries
// of receivers, and the code and the state of a sign-in at an identity provider. Every caller can send a body, so the
// work is linear in the length of the text.
import { SecretUrl, maskedValue as mask } from '../lib/audit-fields.ts';
import { escapeHtml } from '../lib/html.ts';
import { parseJson } from '../lib/json.ts';
import type { JournalMessage } from './control-client.ts';

/** How the names of fields and headers end whose values are secrets. */
const secretEnd = /(?:password|passwd|pwd|token|secret|signature|authorization|cookie|key)s?$|headers$/;

/** Many values may have the same name, so a longer one would take long to look at. It counts as secret. */
const maxNameLength = 256;

/** The name may have brackets, such as `password[]`. */
function isSecret(name: string): boolean {
  if (name.length > maxNameLength) return true;
  const words = name
    .trim()
    .toLowerCase()
    .split(/[[\]]+/);
  return words.some((word) => !/^(?:expir|max)/.test(word) && secretEnd.test(word));
}

type GivenHeaders = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Shorter values occur by chance in other texts. Passwords and keys have at least this length. */
const minSecretLength = 8;
/** A longer value, or one more than these, is masked only where its field gives it. */
const maxSecretLength = 256;
const maxSecrets = 64;

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

  /** Masks the query of an address, and pairs that follow its path without a question mark. */
  address(address: string): string {
    const [path = ''] = address.split('?', 1);
    const query = address.slice(path.length + 1);
    // From and to the identity provider.
    const isSignIn = path.endsWith('/oidc/callback') || query.includes('code_challenge=');
    const field = (name: string, value: string) =>
      isSignIn && /^(?:code|state)$/.test(name) ? this.#remember(value) : this.#field(name, value);
    return (
      replaceInPairs(path, this.#field) +
      address.slice(path.length, path.length + 1) +
      replaceInPairs(query, field)
    );
  }

  body(body: string): string {
    const known = maskKnownForms(replaceInBody(body, this.#field));
    // The longest is first, because another may be its beginning.
    return [...this.#secrets]
      .sort((one, other) => other.length - one.length)
      .reduce((text, secret) => text.replaceAll(secret, mask), known);
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
    // Such as the values of custom headers.
    if (value.startsWith('{')) replaceInJson(value, (_name, text) => this.#remember(text));
    else if (value.length >= minSecretLength && value.length <= maxSecretLength)
      for (const form of [value, JSON.stringify(value).slice(1, -1), escapeHtml(value)])
        if (this.#secrets.size < maxSecrets) this.#secrets.add(form);
    return mask;
  }
}

/** Signature keys, form tokens and keys of programs are recognized anywhere. */
function maskKnownForms(text: string): string {
  return text.replace(/\b(whsec_|form_|stw_)([A-Za-z0-9+/=_-]+)/g, (whole, kind: string, rest: string) =>
    rest.length < 16 ? whole : `${kind}${mask}`,
  );
}

/** Returns the value to show. */
type Replace = (name: string, value: string) => string;

/**
 * The form of the body is recognized by its content, because clients may send a wrong content type. It may be cut at
 * its end.
 */
function replaceInBody(body: string, replace: Replace): string {
  if (body.startsWith('--')) return replaceInParts(body, replace);
  const isForm = /^[^\s=<>{}"]+=/.test(body);
  return isForm ? replaceInPairs(body, replace) : replaceInText(body, replace);
}

/** Pairs of a query or a form. */
function replaceInPairs(text: string, replace: Replace): string {
  const pairs = text.split('&').map((pair) => {
    const [name = ''] = pair.split('=', 1);
    const value = decode(pair.slice(name.length + 1));
    const shown = value === '' ? '' : replaceInText(replace(decode(name), value), replace);
    return shown === value ? pair : `${name}=${encodeURIComponent(shown)}`;
  });
  return pairs.join('&');
}

function decode(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}

/** RFC 2046 allows 70 characters after two hyphens. */
const maxDelimiterLength = 72;

/** Parts of a multipart form. */
function replaceInParts(text: string, replace: Replace): string {
  const [delimiter = ''] = text.slice(0, maxDelimiterLength).split(/\r?\n/, 1);
  const parts = text.split(`\n${delimiter}`).map((part) => {
    const gap = /\r?\n\r?\n/.exec(part);
    const head = gap ? part.slice(0, gap.index + gap[0].length) : '';
    const name = /\bname="?([^";\r\n]+)/i.exec(head)?.[1] ?? '';
    const value = part.slice(head.length).replace(/\r$/, '');
    const end = part.slice(head.length + value.length);
    return value === '' ? part : `${head}${replaceInText(replace(name, value), replace)}${end}`;
  });
  return parts.join(`\n${delimiter}`);
}

function replaceInText(text: string, replace: Replace): string {
  return replaceInXml(replaceInJson(text, replace), replace);
}

/** A text with the colon that makes it a name, or a bracket. The last text may be cut. */
const jsonToken = /"((?:[^"\\]|\\.)*)(?:"(\s*:)?)?|[[\]{}]/gs;

/** JSON, anywhere in a text: the value of a name, and the values in its list. */
function replaceInJson(text: string, replace: Replace): string {
  let name = '';
  let isList = false;
  return text.replace(jsonToken, (token: string, quoted: string | undefined, colon: string | undefined) => {
    const value = quoted === undefined ? '' : unescapeJson(quoted);
    const isValue = quoted !== undefined && colon === undefined;
    const shown = isValue ? replaceInXml(replace(name, value), replace) : value;
    if (!isValue) isList = token === '[';
    if (colon !== undefined) name = value;
    else if (!isList) name = '';
    return shown === value ? token : JSON.stringify(shown);
  });
}

/** The text may be cut, even within an escape sequence. */
function unescapeJson(text: string): string {
  return (parseJson(`"${text}"`) as string | undefined) ?? text.replace(/\\(.)/gs, '$1');
}

/** The beginning of a tag, a name in it with its value, or the text that follows a tag or a comment. */
const xmlToken = /<(?!!)([^\s<>="'/]*)|([^\s<>="']+)(?:\s*=\s*("[^"]*"?|'[^']*'?))?|>([^<]*)/g;

/** Texts and attributes of XML. */
function replaceInXml(text: string, replace: Replace): string {
  let element = '';
  let isInTag = false;
  const show = (token: string, begun?: string, name?: string, quoted?: string, content?: string) => {
    if (begun !== undefined) {
      element = begun;
      isInTag = true;
      return token;
    }
    if (content !== undefined) isInTag = false;
    const value = content?.trim() ?? (isInTag ? quoted?.slice(1, -1) : undefined) ?? '';
    const shown = value === '' ? '' : replace(name ?? element, value);
    if (shown === value) return token;
    return name === undefined ? `>${shown}` : `${name}="${shown}"`;
  };
  return text.replace(xmlToken, show);
}
