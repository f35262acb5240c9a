// Fails a test file when one of its tokens, passwords or keys appears in a log line or in an entry of the audit trail.
import { expect } from 'vitest';

const secrets = new Set<string>();
const recorded: string[] = [];

/** Shorter secrets appear in other texts by chance. */
const minLength = 8;

export function noteSecret(...texts: readonly (string | undefined)[]): void {
  for (const text of texts) if (text !== undefined && text.length >= minLength) secrets.add(text);
}

/** Notes the encodings in which the bytes may appear in a text. */
export function noteSecretBytes(bytes: Buffer): void {
  noteSecret(bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex'));
}

/** Notes log lines or entries of the audit trail. */
export function noteRecord(text: string): void {
  recorded.push(text);
}

/** Checks what a test file has recorded, and forgets it. */
export function expectNoSecretRecorded(): void {
  const text = recorded.splice(0).join('\n');
  const leaked = [...secrets].filter((secret) => text.includes(secret));
  secrets.clear();
  expect(leaked).toEqual([]);
}
