// `steward import-manifest`: reads a version manifest from a file or an address and returns it as importManifest
// would store it.
import { readFile } from 'node:fs/promises';
import { deployment, installedVersions } from '../upgrades/versions/deployment.ts';
import { readManifest } from '../upgrades/versions/manifest.ts';
import { CommandError } from './command-error.ts';
import { answerLimits, readAddress, tokenAdvice, withRemote } from './remote.ts';

type ImportManifestOptions = {
  /** A path, or an http or https address. */
  readonly source: string;
  readonly token: string | undefined;
};

export async function importManifest(options: ImportManifestOptions, limits = answerLimits): Promise<string> {
  const bytes = /^https?:/i.test(options.source)
    ? await download(options, limits)
    : await readLocal(options.source);
  // The links may lead to the versions of a fresh deployment.
  const result = readManifest(bytes, installedVersions(deployment.initial));
  if ('problems' in result)
    throw new CommandError('The manifest has versions that Steward does not accept:', result.problems);
  return `${JSON.stringify(result.versions, null, 2)}\n`;
}

async function download(
  { source, token }: ImportManifestOptions,
  limits: typeof answerLimits,
): Promise<Buffer> {
  const url = readAddress(source);
  const { status, body } = await withRemote(
    (send) =>
      send(url, {
        method: 'GET',
        headers: {
          accept: 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
      }),
    limits,
  );
  if (status !== 200) {
    const advice = status === 401 ? ` ${tokenAdvice}` : '';
    throw new CommandError(`${url.origin}${url.pathname}: The server answered ${status}.${advice}`);
  }
  return body;
}

async function readLocal(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new CommandError(`The file cannot be read: ${(error as Error).message}.`);
  }
}
