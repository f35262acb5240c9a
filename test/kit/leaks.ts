// Every token, password and key that a test file has to do with, and every line that was logged meanwhile: none may be in the other.
import { afterAll, expect } from 'vitest';

const secrets = new Set<string>();
const logged: string[] = [];

/** Short ones are in many a text by chance. */
const shortest = 8;

export function noteSecret(...texts: readonly (string | undefined)[]): void {
  for (const text of texts) if (text !== undefined && text.length >= shortest) secrets.add(text);
}

/** As it may be written down in a text. */
export function noteSecretBytes(bytes: Buffer): void {
  noteSecret(bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex'));
}

export function noteLog(text: string): void {
  logged.push(text);
}

afterAll(() => {
  const text = logged.join('\n');
  expect([...secrets].filter((secret) => text.includes(secret))).toEqual([]);
});
