// Runs examples/ci.sh with a plain POSIX shell.
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { patience, pathOf, run, succeeds } from './kit.ts';

const shell = succeeds('dash', '-c', ':') ? 'dash' : 'sh';
const hasTools = succeeds('curl', '--version') && succeeds(shell, '-c', ':');

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'steward-ci-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it.skipIf(!hasTools)(
  'tests an upgrade, a webhook and a failure, and leaves nothing behind',
  patience,
  async () => {
    const folder = makeFolder();
    const result = await run(shell, [pathOf('examples/ci.sh')], { TMPDIR: folder });
    expect(result).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        'ok: state of the upgrade: success',
        'ok: the receiver accepted UpgradeSucceeded',
        'ok: state of the upgrade with a failure: failed',
        'ok: code of the last failure: "code":2901',
        'ok: state of the resumed upgrade: success',
        '',
      ].join('\n'),
    });
    expect(readdirSync(folder)).toEqual([]);
  },
);

it.skipIf(!hasTools)('fails with the reason when the server does not start', patience, async () => {
  const folder = makeFolder();
  const bin = makeFolder();
  // Starts the server without a valid port.
  writeFileSync(
    join(bin, 'node'),
    `#!/bin/sh\ncase $1 in */main.js) PORT=none ;; esac\nexec "${process.execPath}" "$@"\n`,
  );
  chmodSync(join(bin, 'node'), 0o755);
  const env = { TMPDIR: folder, PATH: `${bin}:${process.env.PATH ?? ''}` };
  const { code, stderr } = await run(shell, [pathOf('examples/ci.sh')], env);
  expect(code).toBe(1);
  expect(stderr).toContain('FAILED: Steward did not start');
  expect(stderr).toContain('PORT must be an integer');
  expect(readdirSync(folder)).toEqual([]);
});
