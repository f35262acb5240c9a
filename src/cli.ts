// The command `steward`: without arguments it starts the server, otherwise it runs one of the commands below.
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { accesses } from './catalog/catalog.ts';
import { CommandError, formatError } from './commands/command-error.ts';
import { formatBuild, readBuild } from './lib/build.ts';

const usage = `Usage:
  steward                                 start the server; variables of the environment configure it
  steward import-catalog ADDRESS          print the catalog of another server as a CATALOG_FILE
      --access ACCESS                     who sees the services: ${accesses.join(', ')} (default: public)
      --token-file FILE                   a file with the token (default: the variable STEWARD_TOKEN)
  steward --version
  steward --help
`;

async function run([command, ...args]: readonly string[]): Promise<string | undefined> {
  switch (command) {
    case undefined: {
      const { runProcess } = await import('./app/process.ts');
      // Without a .env, because that of the current directory often belongs to the project that is tested.
      await runProcess({
        startControlled: async (options) => (await import('./testing/routes.ts')).startControlled(options),
      });
      return undefined;
    }
    case 'import-catalog':
      return runImport(args);
    case '--version':
      return `${formatBuild(await readBuild(import.meta.url))}\n`;
    case '--help':
      return usage;
    default:
      throw new CommandError(`There is no command ${command}.`, usage.trimEnd().split('\n'));
  }
}

async function runImport(args: readonly string[]): Promise<string> {
  const { importCatalog } = await import('./commands/import-catalog.ts');
  const { positionals, values } = readArguments(args);
  const [address, ...others] = positionals;
  if (address === undefined || others.length > 0)
    throw new CommandError('The command takes one address.', usage.trimEnd().split('\n'));
  const access = accesses.find((name) => name === values.access);
  if (!access) throw new CommandError(`--access must be one of ${accesses.join(', ')}.`);
  const token = await readToken(values['token-file']);
  return importCatalog({ address, token, access, env: process.env });
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: { access: { type: 'string', default: 'public' }, 'token-file': { type: 'string' } },
      allowPositionals: true,
    });
  } catch (error) {
    const [message = '', ...advice] = (error as Error).message.split('\n');
    throw new CommandError(message, advice);
  }
}

/** A token among the arguments would be visible to every user of the machine, so it comes from a file or a variable. */
async function readToken(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return process.env.STEWARD_TOKEN?.trim() || undefined;
  try {
    return (await readFile(path, 'utf8')).trim() || undefined;
  } catch (error) {
    throw new CommandError(`The token file cannot be read: ${(error as Error).message}.`);
  }
}

run(process.argv.slice(2)).then(
  (output) => process.stdout.write(output ?? ''),
  (error: unknown) => {
    process.stderr.write(`${formatError(error as Error)}\n`);
    process.exitCode = 1;
  },
);
