// Builds one executable file for this platform, for `npm run executable`: Node, the server, its packages and its files,
// without the Kubernetes client. It is a single executable application of Node, and needs nothing else on a machine.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { URL, fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { findCommit } from './build.js';
import { escapeTemplates, runtimeFiles } from './bundle.js';
import { installNode } from './node.js';

/** The first with long-term support that has `--build-sea`. npm checks what it downloads. */
const nodeVersion = '26.10.0';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (path) => readFileSync(join(root, path), 'utf8');

/** Where the code finds the files inside the executable. There is no such folder on a machine. */
const builtFiles = 'file:///steward.executable/dist/';

function embeddedFiles() {
  const files = { [new URL('../package.json', builtFiles).pathname]: read('package.json') };
  const commit = findCommit(root);
  const add = (place, text) => (files[new URL(place, builtFiles).pathname] = text);
  if (commit !== undefined) add('commit', commit);
  for (const [from, to] of runtimeFiles) {
    if (/\.\w+$/.test(from)) add(to, read(from));
    else for (const name of readdirSync(join(root, from))) add(`${to}/${name}`, read(join(from, name)));
  }
  return files;
}

/** The code of the server reads its files with `node:fs/promises`. */
const embedding = {
  name: 'embedded files',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:fs\/promises$/ }, ({ namespace }) =>
      namespace === 'embedded' ? undefined : { path: 'files', namespace: 'embedded' },
    );
    onResolve({ filter: /^@kubernetes\/client-node/ }, () => ({ path: 'client', namespace: 'embedded' }));
    onLoad({ filter: /^client$/, namespace: 'embedded' }, () => ({
      contents: `throw new Error('UPGRADE_EXECUTOR=kubernetes needs the package or the image of Steward: the executable has no Kubernetes client.'); module.exports = {};`,
    }));
    onLoad({ filter: /^files$/, namespace: 'embedded' }, () => ({
      contents: `
        import * as fs from 'node:fs/promises';
        export * from 'node:fs/promises';
        const files = ${JSON.stringify(embeddedFiles())};
        const pathOf = (place) => (place instanceof URL ? place.pathname : undefined);
        export const readFile = async (place, ...options) => files[pathOf(place)] ?? fs.readFile(place, ...options);
        export const readdir = async (place, ...options) => {
          const names = Object.keys(files).filter((path) => path.startsWith(pathOf(place)));
          return names.length === 0 ? fs.readdir(place, ...options) : names.map((path) => path.slice(pathOf(place).length));
        };`,
    }));
  },
};

/** The licenses of all that is in the executable ask for their text beside it. */
function licensesOf(inputs, nodeLicense) {
  const folders = Object.keys(inputs).flatMap(
    (path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? [],
  );
  const texts = [...new Set(folders)].sort().map((folder) => {
    const name = readdirSync(join(root, folder)).find((file) => /^licen[cs]e/i.test(file));
    const { license } = JSON.parse(read(join(folder, 'package.json')));
    return `${relative('node_modules', folder)}\n\n${name ? read(join(folder, name)) : `License: ${license}`}`;
  });
  return [`steward\n\n${read('LICENSE')}`, ...texts, `node\n\n${nodeLicense}`].join(
    `\n\n${'-'.repeat(80)}\n\n`,
  );
}

/** Writes the executable and the licenses into the folder, and returns the path of the executable. */
export async function buildExecutable(folder) {
  const work = mkdtempSync(join(tmpdir(), 'steward-executable-'));
  try {
    const main = join(work, 'steward.cjs');
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: ['src/cli.ts'],
      outfile: main,
      bundle: true,
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      metafile: true,
      minifyWhitespace: true,
      external: ['pg-native'],
      define: { 'import.meta.url': JSON.stringify(builtFiles) },
      plugins: [embedding],
      logLevel: 'warning',
    });
    escapeTemplates(main);
    const node = installNode(nodeVersion, join(root, 'node_modules/.cache', `node-${nodeVersion}`));
    mkdirSync(folder, { recursive: true });
    const { version } = JSON.parse(read('package.json'));
    const path = join(folder, `steward-${version}-${process.platform}-${process.arch}`);
    const output = process.platform === 'win32' ? `${path}.exe` : path;
    const config = join(work, 'sea.json');
    writeFileSync(
      config,
      JSON.stringify({ main, output, disableExperimentalSEAWarning: true, useCodeCache: true }),
    );
    execFileSync(node, ['--build-sea', config], { stdio: ['ignore', 'ignore', 'inherit'] });
    const nodeLicense = readFileSync(join(dirname(node), '../LICENSE'), 'utf8');
    writeFileSync(`${path}.licenses.txt`, licensesOf(metafile.inputs, nodeLicense));
    return output;
  } finally {
    rmSync(work, { recursive: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = await buildExecutable(resolve(process.argv[2] ?? 'release'));
  process.stdout.write(`${relative(process.cwd(), path)}\n`);
}
