// Tests that fail the first time, each for another reason. repetition.test.ts runs them.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';

let tries = 0;

const failFirst = (status: number) => expect((tries += 1) === 1 ? status : 200).toBe(200);

it('answers 503 once', () => {
  tries = 0;
  failFirst(503);
});

it('computes for long', () => {
  tries = 0;
  for (const end = performance.now() + 1_500; performance.now() < end;);
  failFirst(503);
});

it('waits for a program', () => {
  tries = 0;
  execFileSync('sleep', ['1.5']);
  failFirst(503);
});

let stalls = 0;

it('runs on a machine that stalls', async () => {
  if ((stalls += 1) > 1) return;
  const { pid } = process;
  await once(spawn('sh', ['-c', `kill -STOP ${pid}; sleep 1.5; kill -CONT ${pid}`]), 'exit');
  expect.fail('late');
});

it('runs on a machine that stalls, and fails each time', async () => {
  const { pid } = process;
  await once(spawn('sh', ['-c', `kill -STOP ${pid}; sleep 1.5; kill -CONT ${pid}`]), 'exit');
  expect.fail('wrong');
});
