// Calls a listening server with SOAP toolkits of other languages. Tests of toolkits that are not installed are skipped.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Server, startServer } from '../kit/server.ts';
import { createCallJournal } from './journal.ts';

const compileTimeoutMs = 240_000;
const folder = fileURLToPath(new URL('.', import.meta.url));

/** Returns the output of a command. It must run asynchronously, because the server runs in this process. */
async function run(command: string, args: string[], cwd = folder, timeout = 60_000): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd, timeout });
  return stdout;
}

async function succeeds(probe: Promise<unknown>): Promise<boolean> {
  try {
    await probe;
    return true;
  } catch {
    return false;
  }
}

async function hasPhpSoap(): Promise<boolean> {
  try {
    return /^soap$/m.test(await run('php', ['-m']));
  } catch {
    return false;
  }
}

const importZeep = ['-c', 'import zeep'];
const python = (await succeeds(run('/usr/bin/python3', importZeep))) ? '/usr/bin/python3' : 'python3';
const hasZeep = await succeeds(run(python, importZeep));
const hasPhp = await hasPhpSoap();
const gsoapFlags = ['--cflags', '--libs', 'gsoap++'];
const hasGsoap = await succeeds(
  Promise.all([
    run('wsdl2h', ['-V']),
    run('soapcpp2', ['-V']),
    run('g++', ['--version']),
    run('pkg-config', gsoapFlags),
  ]),
);

describe.each(['plain', 'family'])('PROFILE=%s', (PROFILE) => {
  let server: Server;
  let address: string;
  let expected: object;
  let contentTypes: Set<string | undefined>;

  const { extend, expectCalls } = createCallJournal();

  beforeAll(async () => {
    server = await startServer({ env: { PUBLIC_URL: '', PROFILE }, extend });
    address = `${await server.listen()}/services`;
    server.http.server.on('request', ({ method, headers }) => {
      if (method === 'POST') contentTypes.add(headers['content-type']?.split(';', 1)[0]);
    });
    expected = {
      GetMessageVersion: 'svcProductVersion10',
      GetMessageFormats: 'svcServiceCatalogMessageFormatSoap',
      GetTokenServiceURL: `http://localhost:${new URL(address).port}/tokens/generateToken`,
      GetFolders: ['Maps', 'Tools'],
      RequiresTokens: false,
      GetServiceDescriptions: [
        'Geometry',
        'Places',
        'World',
        'Maps/Boundaries',
        'Maps/Boundaries',
        'Maps/Elevation',
        'Maps/Roads',
        'Tools/Printing',
        'Tools/Routing',
      ],
      GetServiceDescriptionsEx: ['Maps/Boundaries', 'Maps/Boundaries', 'Maps/Elevation', 'Maps/Roads'],
      root: ['Geometry', 'Places', 'World'],
      withToken: 12,
      fault: 'There is no folder named Nowhere.',
    };
  });
  beforeEach(() => {
    contentTypes = new Set();
  });

  function expectAnswers(output: string, version: '1.1' | '1.2') {
    expect(JSON.parse(output)).toEqual(expected);
    expect([...contentTypes]).toEqual([version === '1.1' ? 'text/xml' : 'application/soap+xml']);
    expectCalls();
  }

  describe('zeep', () => {
    it.skipIf(!hasZeep)('reads the WSDL strictly and calls all operations', async () => {
      const args = ['zeep_client.py', `${address}?wsdl`, server.token('administrator')];
      expectAnswers(await run(python, args), '1.1');
    });
  });

  describe('the SoapClient of PHP', () => {
    it.skipIf(!hasPhp).each(['1.1', '1.2'] as const)(
      'reads the WSDL and calls all operations in SOAP %s',
      async (version) => {
        const args = ['php_client.php', `${address}?wsdl`, server.token('administrator'), version];
        expectAnswers(await run('php', args), version);
      },
    );
  });

  describe('gSOAP', () => {
    let workFolder: string;
    beforeAll(async () => {
      workFolder = await mkdtemp(join(tmpdir(), 'gsoap-'));
      if (!hasGsoap) return;
      const make = (command: string, ...args: string[]) => run(command, args, workFolder, compileTimeoutMs);
      await make('wsdl2h', '-o', 'catalog.h', `${address}?wsdl`);
      await make('soapcpp2', '-j', '-C', '-L', '-x', 'catalog.h');
      const flags = (await make('pkg-config', ...gsoapFlags)).trim().split(/\s+/);
      const sources = [join(folder, 'gsoap_client.cpp'), 'soapC.cpp', 'soapServiceCatalogBindingProxy.cpp'];
      await make('g++', '-O0', '-I.', '-o', 'client', ...sources, ...flags);
    }, compileTimeoutMs);
    afterAll(() => rm(workFolder, { recursive: true }));

    it.skipIf(!hasGsoap).each(['1.1', '1.2'] as const)(
      'compiles the WSDL to classes that call all operations in SOAP %s',
      async (version) => {
        const args = [address, server.token('administrator'), version];
        expectAnswers(await run(join(workFolder, 'client'), args), version);
      },
    );
  });
});
