// Writes the type declarations of the package: of the module that programs import, and of the files whose types it
// uses.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { URL } from 'node:url';
import ts from 'typescript';

const files = ['package', 'testing/control-client', 'lib/errors'];

export function writeDeclarations(folder) {
  for (const file of files) {
    const source = new URL(`../src/${file}.ts`, import.meta.url);
    const { outputText, diagnostics } = ts.transpileDeclaration(readFileSync(source, 'utf8'), {
      fileName: source.pathname,
      reportDiagnostics: true,
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, strict: true },
    });
    for (const { messageText } of diagnostics ?? [])
      throw new Error(`${file}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`);
    // The compiler replaces the endings of imports in code, but not in declarations, and keeps imports for their effects.
    const text = outputText
      .replaceAll(/^import '[^']+';\n/gm, '')
      .replaceAll(/from '(\.[^']+)\.ts'/g, "from '$1.js'")
      .replaceAll(/from "(\.[^"]+)\.ts"/g, 'from "$1.js"');
    const target = join(folder, `${file}.d.ts`);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}
