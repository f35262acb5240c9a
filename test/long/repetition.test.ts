// Tests which failures are excused: a test is repeated once, and only if the machine stalled while it ran.
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

it('a test is repeated if the machine stalled, and not because of what the test says or does', () => {
  const vitest = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--config',
    'test/long/repetition/vitest.config.ts',
  ];
  const env = { ...process.env, NO_COLOR: '1' };
  const { stdout, stderr } = spawnSync(process.execPath, vitest, { encoding: 'utf8', env });
  const failed = [...stderr.matchAll(/^ FAIL .* > (.*)$/gm)].map(([, name]) => name);
  expect(new Set(failed)).toEqual(
    new Set([
      'answers 503 once',
      'computes for long',
      'waits for a program',
      'runs on a machine that stalls, and fails each time',
    ]),
  );
  const repeated = stdout.slice(stdout.indexOf('Repeated: ')).replace(/stalled for [0-9.]+ s/g, 'stalled');
  expect(repeated.trim().split('\n')).toEqual([
    'Repeated:  test/long/repetition/cases.ts > runs on a machine that stalls',
    '  late [the machine stalled]',
    'Repeated:  test/long/repetition/cases.ts > runs on a machine that stalls, and fails each time',
    '  wrong [the machine stalled]',
    '  wrong [the machine stalled]',
  ]);
});
