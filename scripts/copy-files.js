// Copies the files that the server reads at run time into dist, next to the compiled code. `npm run build` runs it after the compiler.
import { cpSync, rmSync } from 'node:fs';
import { URL } from 'node:url';

const copies = [
  ['wsdl/', 'dist/wsdl/'],
  ['src/http/assets/', 'dist/http/assets/'],
  ['src/store/postgres/migrations/', 'dist/store/postgres/migrations/'],
];

const root = new URL('../', import.meta.url);
for (const [from, to] of copies) {
  // Without this, a migration that was renamed or deleted would still run.
  rmSync(new URL(to, root), { recursive: true, force: true });
  cpSync(new URL(from, root), new URL(to, root), { recursive: true });
}
