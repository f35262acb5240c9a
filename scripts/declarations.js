// Writes the type declarations of the package: of the module that programs import, and of the files whose types it uses.
import { readFileSync, writeFileSync } from 'node:fs';
import { URL } from 'node:url';
import ts from 'typescript';

const files = ['steward', 'control/control-client', 'errors'];

const root = new URL('../', import.meta.url);
for (const file of files) {
  const source = new URL(`src/${file}.ts`, root);
  const { outputText, diagnostics } = ts.transpileDeclaration(readFileSync(source, 'utf8'), {
    fileName: source.pathname,
    reportDiagnostics: true,
    compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, strict: true },
  });
  for (const { messageText } of diagnostics ?? [])
    throw new Error(`${file}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`);
  // The compiler replaces the endings of imports in code, but not in declarations.
  const text = outputText
    .replaceAll(/from '(\.[^']+)\.ts'/g, "from '$1.js'")
    .replaceAll(/from "(\.[^"]+)\.ts"/g, 'from "$1.js"');
  writeFileSync(new URL(`dist/${file}.d.ts`, root), text);
}
