// Phrases that the documentation does not use, because they name no subject or have a standard word, each with what
// to write.

export type Phrase = { readonly pattern: RegExp; readonly instead: string };

export const phrases: readonly Phrase[] = [
  { pattern: /\b(?:tells?|told|telling)\b/gi, instead: 'reports, returns, logs, shows or notifies' },
  { pattern: /\bstand(?:s|ing)? against\b/gi, instead: 'blocks' },
  { pattern: /\b(?:is|are|was|were|be|been|being|while) away\b/gi, instead: 'unavailable' },
  {
    pattern: /\b(?:whoever|whomever|somebody|someone who)\b/gi,
    instead: 'the subject: the caller, the process, the receiver',
  },
  { pattern: /\b(?:is|are|was|were) none\b/gi, instead: '“is not one”, “does not exist” or “has no …”' },
  { pattern: /\b(?:is|are|was|be) had\b/gi, instead: 'is available, comes from, or can be obtained' },
  { pattern: /\bmade up\b/gi, instead: 'generated, or consists of' },
  { pattern: /\bse(?:e|es|en|eing) through\b|\bseen through\b/gi, instead: 'waits for, or completes' },
  { pattern: /\bborders?\b/gi, instead: 'after the current step, or boundary' },
  { pattern: /\ball that\b/gi, instead: 'the subject: every webhook, all data' },
  { pattern: /\bas (?:it is|they are)(?=[.,;:)]|$)/gim, instead: 'unchanged' },
  { pattern: /\bunder way\b/gi, instead: 'in progress' },
  { pattern: /\bborne with\b/gi, instead: 'tolerated' },
  { pattern: /\blet go of\b/gi, instead: 'released, or closed' },
  { pattern: /\bmend(?:s|ed|ing)?\b/gi, instead: 'fix' },
  {
    pattern: /\b(?:courier|herald|gatekeeper|turnstile|librarian)\b/gi,
    instead: 'the name of the class, such as delivery worker',
  },
  { pattern: /\bthe (?:contract|specification)\b/gi, instead: 'a link to docs/protocol.md' },
];

/** Every forbidden phrase in a text, with its line and what to write instead. */
export function forbiddenPhrases(path: string, text: string): string[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      phrases.flatMap(({ pattern, instead }) =>
        [...line.matchAll(pattern)].map(
          ([found]) => `${path}:${index + 1}: write “${instead}” instead of “${found}”.`,
        ),
      ),
    );
}
