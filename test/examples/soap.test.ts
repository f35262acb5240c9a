// Runs the SOAP clients in examples/ against a server. Tests of toolkits that are not installed are skipped.
import { describe, expect, it } from 'vitest';
import { password, startSteward } from '../kit/steward.ts';
import { pathOf, patience, run, succeeds } from './kit.ts';

const importZeep = ['-c', 'import zeep'];
const python = succeeds('/usr/bin/python3', ...importZeep) ? '/usr/bin/python3' : 'python3';
const clients = [
  {
    name: 'soap-python',
    command: [python, pathOf('examples/soap-python/client.py')] as const,
    isMissing: !succeeds(python, ...importZeep),
  },
  {
    name: 'soap-php',
    command: ['php', pathOf('examples/soap-php/client.php')] as const,
    isMissing: !succeeds('php', '-r', 'exit(extension_loaded("soap") ? 0 : 1);'),
  },
];

describe.each(clients)('$name', ({ command: [program, file], isMissing }) => {
  it.skipIf(isMissing)(
    'lists folders and services, with a token also those for members',
    patience,
    async () => {
      const { address } = await startSteward({ CATALOG_FILE: pathOf('examples/catalog.json') });
      const services = `${address}/services`;
      const list = (env: Record<string, string> = {}) => run(program, [file, services], env);
      expect(await list()).toEqual({
        code: 0,
        stderr: '',
        stdout: [
          '/',
          `  Coastline (MapServer) ${services}/Coastline/MapServer`,
          'Archive',
          'Harbour',
          `  Harbour/Depths (FeatureServer) ${services}/Harbour/Depths/FeatureServer`,
          `  Harbour/Depths (MapServer) ${services}/Harbour/Depths/MapServer`,
          '  Harbour/Tides (GPServer) https://tides.example.com/forecast',
          '',
        ].join('\n'),
      });
      const signedIn = await list({ STEWARD_USERNAME: 'admin', STEWARD_PASSWORD: password });
      expect(signedIn.stdout).toContain('\n  Harbour/Berths (FeatureServer) ');
      expect(signedIn.stdout).toContain('\nOperations\n  Operations/Diagnostics (GPServer) ');
      const refused = await list({ STEWARD_USERNAME: 'admin', STEWARD_PASSWORD: 'wrong' });
      expect(refused).toEqual({ code: 1, stdout: '', stderr: 'sign-in failed: Unable to generate token.\n' });
    },
  );

  it.skipIf(isMissing)('asks for credentials where the catalog requires tokens', patience, async () => {
    const { address } = await startSteward({ REQUIRE_TOKENS: 'true' });
    const { code, stderr } = await run(program, [file, `${address}/services`]);
    expect(code).toBe(1);
    expect(stderr).toContain('this catalog requires a token');
  });
});
