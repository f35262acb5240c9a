// Finds the Markdown pages of the repository and the shell examples on them, each with the answer that the page shows.
// A block after `<!-- file: NAME -->` is a file that later examples use: an example that writes it.
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const checkout = fileURLToPath(new URL('../../', import.meta.url));

const answerLanguages = ['json', 'xml', 'text'] as const;

export type Answer = {
  readonly language: (typeof answerLanguages)[number];
  readonly text: string;
};

export type Example = {
  /** The line of the first command. */
  readonly line: number;
  readonly script: string;
  /** The reason why the example is not run. */
  readonly notRun?: string;
  readonly answer?: Answer;
};

export type Page = {
  readonly path: string;
  /** The assignments in `<!-- server: NAME=value … -->`. */
  readonly server?: string;
  /** The test in `<!-- server: none, tested by … -->`, which runs the examples instead. */
  readonly testedBy?: string;
  readonly examples: readonly Example[];
};

/** README.md and every page of docs/ and examples/. */
export function readPages(): Page[] {
  const below = ['docs', 'examples'].flatMap((folder) => filesIn(folder));
  return ['README.md', ...below.filter((path) => path.endsWith('.md'))].map((path) =>
    parsePage(path, readFileSync(checkout + path, 'utf8')),
  );
}

function filesIn(folder: string): string[] {
  try {
    const names = readdirSync(checkout + folder, { recursive: true, encoding: 'utf8' });
    return names.map((name) => `${folder}/${name.replaceAll('\\', '/')}`).sort();
  } catch {
    return [];
  }
}

export function parsePage(path: string, markdown: string): Page {
  const parts = partsOf(markdown);
  const examples = parts.flatMap((part, index): Example[] => {
    const file = commentBefore(parts[index - 1], 'file');
    if (file !== undefined) return [{ line: part.line, script: `cat > ${file} << 'END'\n${part.text}\nEND` }];
    if (part.language !== 'sh') return [];
    const notRun = commentBefore(parts[index - 1], 'not run');
    const answer = answerAfter(parts[index + 1], parts[index + 2]);
    return [
      {
        line: part.line,
        script: part.text,
        ...(notRun !== undefined && { notRun }),
        ...(answer !== undefined && { answer }),
      },
    ];
  });
  const server = /<!-- server: (.*?) -->/.exec(markdown.split('\n').slice(0, 12).join('\n'))?.[1];
  const testedBy = /^none, tested by (\S+)$/.exec(server ?? '')?.[1];
  if (testedBy !== undefined) return { path, testedBy, examples };
  return { path, ...(server !== undefined && { server }), examples };
}

/** A fenced block with its language, or the text between two blocks. */
type Part = { readonly language?: string; readonly line: number; readonly text: string };

/** Blocks and the texts between them alternate; a text may be empty. */
function partsOf(markdown: string): Part[] {
  const parts: Part[] = [];
  let open: { fence: string; indent: number; language: string } | undefined;
  let lines: string[] = [];
  let start = 1;
  const end = (language: string | undefined, next: number) => {
    parts.push({ ...(language !== undefined && { language }), line: start, text: lines.join('\n') });
    lines = [];
    start = next;
  };
  markdown.split('\n').forEach((line, index) => {
    const [, indent = '', fence = '', language = ''] = /^( *)(`{3,})(\S*)/.exec(line) ?? [];
    if (open === undefined && fence !== '') {
      end(undefined, index + 2);
      open = { fence, indent: indent.length, language };
    } else if (open !== undefined && fence.length >= open.fence.length && language === '') {
      end(open.language, index + 2);
      open = undefined;
    } else {
      lines.push(open === undefined ? line : line.replace(new RegExp(`^ {0,${open.indent}}`), ''));
    }
  });
  end(open?.language, start);
  return parts;
}

function commentBefore(text: Part | undefined, name: string): string | undefined {
  return new RegExp(`<!-- ${name}: ([^>]*?) -->\\s*$`).exec(text?.text ?? '')?.[1];
}

/** A block is an answer if at most one short line such as "Answer:" separates it from the commands. */
function answerAfter(between: Part | undefined, block: Part | undefined): Answer | undefined {
  const language = answerLanguages.find((name) => name === block?.language);
  const isDirect = /^\s*([^\n]{1,60}:)?\s*$/.test(between?.text ?? '');
  return language === undefined || block === undefined || !isDirect
    ? undefined
    : { language, text: block.text };
}
