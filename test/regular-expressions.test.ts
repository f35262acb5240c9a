// Checks the regular expressions of src: for every text, the work is linear in its length. The checker refuses
// unbounded quantifiers that compete for the same characters, and most of those in expressions without an anchor.
import { readFileSync, readdirSync } from 'node:fs';
import { isSafePattern } from 'redos-detector';
import ts from 'typescript';
import { expect, it } from 'vitest';

type Expression = { readonly source: string; readonly flags: string };

const root = new URL('../src/', import.meta.url);
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
  /\.[jt]s$/.test(name),
);

/** All literals, and all calls of `RegExp`, whose arguments must consist of constants of the file. */
function expressionsOf(fileName: string, text: string): Expression[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest);
  const constants = new Map<string, ts.Expression>();
  const found: Expression[] = [];
  for (const { name, initializer } of file.statements.filter(ts.isVariableStatement).flatMap(declarationsOf))
    if (ts.isIdentifier(name) && initializer) constants.set(name.text, initializer);
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) found.push(readLiteral(node));
    if ((ts.isNewExpression(node) || ts.isCallExpression(node)) && isRegExp(node.expression)) {
      const [source, flags] = node.arguments ?? [];
      found.push({ source: source ? valueOf(source) : '', flags: flags ? valueOf(flags) : '' });
    }
    ts.forEachChild(node, visit);
  };
  const valueOf = (node: ts.Expression): string => {
    if (ts.isStringLiteralLike(node)) return node.text;
    if (ts.isRegularExpressionLiteral(node)) return readLiteral(node).source;
    if (ts.isBinaryExpression(node)) return valueOf(node.left) + valueOf(node.right);
    if (ts.isTemplateExpression(node))
      return node.templateSpans.reduce(
        (start, { expression, literal }) => start + valueOf(expression) + literal.text,
        node.head.text,
      );
    const constant = ts.isIdentifier(node) ? constants.get(node.text) : undefined;
    if (!constant) throw new Error(`${fileName}: ${node.getText(file)} is no constant.`);
    return valueOf(constant);
  };
  visit(file);
  return found;
}

const declarationsOf = ({ declarationList }: ts.VariableStatement) => declarationList.declarations;
const isRegExp = (node: ts.Expression) => ts.isIdentifier(node) && node.text === 'RegExp';

function readLiteral({ text }: ts.RegularExpressionLiteral): Expression {
  const end = text.lastIndexOf('/');
  return { source: text.slice(1, end), flags: text.slice(end + 1) };
}

function isLinear({ source, flags }: Expression): boolean {
  // The checker does not know names of groups, the flag y, and i together with u.
  const plain = source.replaceAll(/\(\?<\w+>/g, '(');
  const { safe } = isSafePattern(flags.includes('y') ? `^(?:${plain})` : plain, {
    caseInsensitive: flags.includes('i') && !flags.includes('u'),
    dotAll: flags.includes('s'),
    multiLine: flags.includes('m'),
    unicode: flags.includes('u'),
  });
  return safe;
}

// It takes four seconds of processor time: on a busy machine many times as long.
it('every regular expression is linear', { timeout: 600_000 }, () => {
  const found = files.flatMap((name) =>
    expressionsOf(name, readFileSync(new URL(name, root), 'utf8'))
      .filter((expression) => !isLinear(expression))
      .map(({ source, flags }) => `${name}: /${source}/${flags}`),
  );
  expect(found).toEqual([]);
});

it.each([
  ['two quantifiers side by side', '/^a*a*$/'],
  ['nested quantifiers', '/^(?:a+)+$/'],
  ['a quantifier without an anchor', '/a+b/'],
  ['an input of a page', '/<input[^>]*\\sname="/'],
  ['a constructed expression', "const name = 'a*'; new RegExp(`^${name}` + name + '$', 'u')"],
])('finds %s', (_what, text) => {
  expect(expressionsOf('example.ts', text).map(isLinear)).toEqual([false]);
});

it('refuses an expression that is built from other texts', () => {
  expect(() => expressionsOf('example.ts', 'f = (name) => new RegExp(name)')).toThrow('name is no constant');
});
