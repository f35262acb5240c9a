// Which build runs: the version of the package, and the commit of the checkout that it was built from.
import { readFile } from 'node:fs/promises';

/** Without git there is no commit. */
export type Build = { readonly version: string; readonly commit?: string | undefined };

/** `folder` is that of the compiled code. */
export async function readBuild(folder: string | URL): Promise<Build> {
  const read = (path: string) => readFile(new URL(path, folder), 'utf8');
  const { version } = JSON.parse(await read('../package.json')) as { version: string };
  const commit = await read('commit').catch(() => '');
  return commit === '' ? { version } : { version, commit };
}

export function formatBuild({ version, commit }: Build): string {
  return commit === undefined ? version : `${version} (${commit})`;
}
