// Closes what the tests start: what a test or its hooks have started, after that test, and all else after the test file.
import { beforeAll, beforeEach } from 'vitest';

type Close = () => Promise<void>;

const started = { test: new Set<Close>(), file: new Set<Close>() };
let scope: keyof typeof started = 'file';

/** Returns a function that closes once: when it is called, or else at the end of the present test or file. */
export function closeOnce(close: () => unknown): Close {
  const closes = started[scope];
  let closed: Promise<void> | undefined;
  const run = async () => void (await close());
  const once = () => {
    closes.delete(once);
    return (closed ??= run());
  };
  closes.add(once);
  return once;
}

/** What it starts is for each test of the file or of the group. The properties are set before the test runs. */
export function perTest<T extends object>(start: () => Promise<T>): T {
  const present = {} as T;
  beforeEach(async () => void Object.assign(present, await start()));
  return present;
}

/** What it starts is for all tests of the file or of the group. The properties are set before the tests run. */
export function perFile<T extends object>(start: () => Promise<T>): T {
  const present = {} as T;
  beforeAll(async () => void Object.assign(present, await start()));
  return present;
}

export function beginTest(): void {
  scope = 'test';
}

/** Closes the newest first. */
export async function end(ended: keyof typeof started): Promise<void> {
  scope = 'file';
  for (const close of [...started[ended]].reverse()) await close();
}
