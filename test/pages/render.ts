// Prints a page as text: one line per heading, paragraph, field, item and row, with links, buttons and hidden values.
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

const decode = (text: string) =>
  text.replaceAll(/&(\w+|#39);/g, (whole, name: string) => entities[name] ?? whole);

/** Elements that begin a line, except within a row. */
const blocks = /^(h[1-6]|p|div|form|label|pre|section|summary|fieldset|header|main|aside)$/;

/** Classes that a reader sees as a colour, and attributes that change what an element does. */
const marks = /^(good|warn|bad|busy|done|failed|waiting|unchanged|primary|danger|problem|none)$/;
const flags =
  /^(disabled|required|checked|readonly|open|autofocus|aria-invalid|aria-current|aria-sort|role|type|maxlength|list|data-live|data-copy|data-ended|data-running|hidden|formaction|formmethod)$/;
const usual = /^(role=(?:row|cell|group|table|rowgroup|columnheader|rowheader)|type=(?:button|hidden|text))$/;

type Attributes = Readonly<Record<string, string>>;

function attributesOf(tag: string): Attributes {
  const found = [...tag.matchAll(/\s([\w-]+)(?:="([^"]*)")?/g)];
  return Object.fromEntries(found.map(([, name = '', value = '']) => [name, decode(value)]));
}

function marksOf(attributes: Attributes): string {
  const classes = (attributes.class ?? '').split(' ').filter((name) => marks.test(name));
  const others = Object.entries(attributes)
    .filter(([name]) => flags.test(name))
    .map(([name, value]) => (value === '' ? name : `${name}=${value}`))
    .filter((flag) => !usual.test(flag));
  return [...classes, ...others].map((mark) => `‹${mark}›`).join('');
}

/** Ids and tokens are numbered as they appear: the number of those before them does not matter. */
function mask(text: string): string {
  const ids: string[] = [];
  return text
    .replaceAll(/form_[\w-]+/g, 'form_token')
    .replaceAll(/whsec_[\w+/=-]+/g, 'whsec_key')
    .replaceAll(/v1,[\w+/]+=*/g, 'v1,signature')
    .replaceAll(/\bid=[\w-]{22}/g, 'id=key')
    .replaceAll(/(?<=%2F|\b)(id-\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g, (id) => {
      if (!ids.includes(id)) ids.push(id);
      return `id${ids.indexOf(id) + 1}`;
    });
}

type Line = { readonly text: string; /** The list or table of a row. */ readonly list: number | undefined };

/** Of more than eight rows of a list or table, the first two and the last one. */
function shorten(lines: readonly Line[]): string[] {
  return lines.flatMap(({ text, list }, index) => {
    const own = lines.filter((line) => list !== undefined && line.list === list);
    const place = own.indexOf(lines[index] as Line);
    if (own.length <= 8 || place < 2 || place === own.length - 1) return text;
    return place === 2 ? `… ${own.length - 3} more` : [];
  });
}

/** The part of the page between two tags, as text. */
export function render(page: string, name: 'main' | 'header' | 'body' = 'main'): string {
  const part = page
    .slice(page.indexOf(`<${name}`), page.indexOf(`</${name}>`))
    // Short lists that fit on a line.
    .replaceAll(/<ol class="(?:steps|phases|hops)"[^>]*>([^]*?)<\/ol>/g, '<nav>$1</nav>')
    .replaceAll(/<svg([^>]*)>[^]*?<\/svg>/g, (_picture, given: string) => {
      const label = attributesOf(given)['aria-label'];
      return label === undefined ? '' : `‹${label}›`;
    });
  const lines: Line[] = [];
  let line = '';
  let lists = 0;
  let depth = 0;
  let isRecord = false;
  let href = '';
  const end = (list?: number) => {
    const text = line.replaceAll(/\s+/g, ' ').trim();
    // The marks of an element stand before the first text in it.
    if (/^(‹[^›]*›|\s)*$/.test(text)) return;
    lines.push({ text, list });
    line = '';
  };
  for (const [token, tag = ''] of part.matchAll(/<\/?([a-z][a-z0-9]*)[^>]*>|[^<]+/g)) {
    const isEnd = token.startsWith('</');
    const given = tag === '' ? {} : attributesOf(token);
    const sent = given.name === undefined ? '' : `${given.name}=${given.value ?? ''}`;
    const marked = isEnd ? '' : marksOf(given);
    if (tag === '') line += decode(token);
    else if (/^(tr|li|nav)$/.test(tag)) {
      if (depth === 0) end();
      depth += isEnd ? -1 : 1;
      if (depth === 0) end(lists);
      else line += isEnd || tag === 'nav' ? ' ' : `${tag === 'tr' ? '|' : '-'} ${marked}`;
    } else if (/^(ul|ol|tbody)$/.test(tag) && depth === 0) lists += 1;
    else if (tag === 'dl') isRecord = !isEnd;
    else if (tag === 'dt') line += isEnd ? ': ' : ' ';
    else if (tag === 'dd') line += isEnd ? ';' : '';
    else if (blocks.test(tag)) {
      line += ' ';
      if (isEnd) continue;
      // A paragraph continues the line of its heading, and the label of a checkbox that of the box.
      const isJoined =
        /unseen|hint|actions/.test(given.class ?? '') ||
        (tag === 'label' && line.trimEnd().endsWith('}')) ||
        (/^(p|div)$/.test(tag) && /^(‹[^›]*›|\s)*#/.test(line));
      if (depth === 0 && !isRecord && !isJoined) end();
      const prefix = /^h\d$/.test(tag) ? `${'#'.repeat(Number(tag[1]))} ` : '';
      line += tag === 'form' ? `${marked}${given.method ?? ''} ${given.action ?? ''} ` : prefix + marked;
    } else if (tag === 'td' || tag === 'th') line += isEnd ? ' | ' : marked;
    else if (tag === 'a') {
      line += isEnd ? `](${href})` : `${marked}[`;
      href = given.href ?? '';
    } else if (tag === 'button') line += isEnd ? ']]' : `${marked}[[${[sent, given['aria-label']].join(' ')}`;
    else if (tag === 'input') line += ` ${marked}{${sent}} `;
    else if (tag === 'select' || tag === 'textarea') line += isEnd ? '} ' : ` ${marked}{${given.name}=`;
    else if (tag === 'option') line += isEnd ? '/' : `${'selected' in given ? '*' : ''}${given.value}:`;
    else if (tag === 'progress') line += isEnd ? '' : `‹${given.value} of ${given.max}›`;
    else line += marked;
  }
  end();
  return `${mask(shorten(lines).join('\n').replaceAll('[[ ', '[['))}\n`;
}
