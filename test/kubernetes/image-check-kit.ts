// An image checker for tests: one workload for each image, and results as plain texts.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { formatProblem } from '../../src/lib/errors.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { ImageChecker } from '../../src/upgrades/executors/images/image-check.ts';

export type CheckOptions = Partial<Omit<ConstructorParameters<typeof ImageChecker>[0], 'insecureHosts'>> & {
  readonly insecure?: readonly string[];
};

export function createChecker({ insecure = [], ...options }: CheckOptions = {}): ImageChecker {
  return new ImageChecker({
    runtime: realRuntime,
    mode: 'auto',
    authFile: undefined,
    userAgent: 'Steward/test',
    insecureHosts: new Set(insecure),
    ...options,
  });
}

/** The container of the first image is `c0` of `deployment/w0`, and so on. */
export async function checkWith(checker: ImageChecker, images: readonly string[]) {
  const { problems, notices } = await checker.check(
    images.map((image, index) => ({
      name: `deployment/w${index}`,
      component: 'W',
      parts: [{ container: `c${index}`, image, formerImage: null }],
    })),
  );
  return { problems: problems.map(formatProblem), notices };
}

export function check(images: readonly string[], options: CheckOptions = {}) {
  return checkWith(createChecker(options), images);
}

/** A file in the format of `docker login`. It is removed after the test. */
export function writeAuthFile(content: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), 'steward-auth-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'config.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

export function encode({ username, password }: { username: string; password: string }): string {
  return Buffer.from(`${username}:${password}`).toString('base64');
}

export const nothing = { problems: [], notices: [] };
