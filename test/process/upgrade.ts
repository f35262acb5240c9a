// The upgrade of the crash tests: a patch of four workloads.
import { expect } from 'vitest';
import { type Message, codesOfPatch, expectOneRun } from '../upgrades/message-codes.ts';
import type { Client } from './steward.ts';

export const upgrades = '/admin/system/upgrades';
export const patchId = 'pat_17022022_1250';
export const patch = { versionManifest: `{"id":"${patchId}"}` };

/** Waits until the patch is installed, and checks that it has run once. Returns its messages. */
export async function expectPatched(
  steward: Client,
  token: string,
  earlierCodes: readonly number[] = [],
): Promise<Message[]> {
  const status = async () =>
    ((await steward.get(upgrades, token)).body as { status: { state: string; messages: Message[] } }).status;
  await expect.poll(async () => (await status()).state, { timeout: 60_000, interval: 50 }).toBe('success');
  const { messages } = await status();
  expectOneRun(messages, [...earlierCodes, ...codesOfPatch(4)]);
  return messages;
}
