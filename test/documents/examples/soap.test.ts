// Runs the SOAP clients in examples/ against a server. Tests of toolkits that are not installed are skipped.
import { describe, expect, it } from 'vitest';
import { startSteward } from '../../kit/steward.ts';
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
    'lists folders and services, with a key also those that its user may see',
    patience,
    async () => {
      const steward = await startSteward({ CATALOG_FILE: pathOf('examples/catalog.json') });
      const services = `${steward.address}/services`;
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
      const { key } = await steward.act<{ key: string }>('security/self/keys/create', { name: 'catalog' });
      const signedIn = await list({ STEWARD_KEY: key });
      expect(signedIn.stdout).toContain('\n  Harbour/Berths (FeatureServer) ');
      expect(signedIn.stdout).toContain('\nOperations\n  Operations/Diagnostics (GPServer) ');
      const refused = await list({ STEWARD_KEY: `stw_${'0'.repeat(43)}` });
      expect([refused.code, refused.stderr]).toEqual([1, 'the catalog refused: Invalid token.\n']);
    },
  );

  it.skipIf(isMissing)('asks for a key where the catalog requires tokens', patience, async () => {
    const { address } = await startSteward({ REQUIRE_TOKENS: 'true' });
    const { code, stderr } = await run(program, [file, `${address}/services`]);
    expect(code).toBe(1);
    expect(stderr).toContain('this catalog requires a token');
  });
});
