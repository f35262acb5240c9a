// Names to addresses. The system's own look-up blocks one of few threads until it is done, so that two names nobody answers for
// would hold up all others: it is asked only where DNS knows the name not at all.
import { Resolver, lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';

/** All addresses of a name; may reject. An abort ends it. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

const hostsFile = '/etc/hosts';

/** Answers that say there is no such name, or that there is no DNS to ask. */
const unknown = ['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'];

export const resolveName: Resolve = async (name, signal) => {
  const known = findInHosts(await readFile(hostsFile, 'utf8').catch(() => ''), name);
  if (known.length > 0) return known;
  const resolver = new Resolver();
  const cancel = () => resolver.cancel();
  if (signal.aborted) return [];
  signal.addEventListener('abort', cancel);
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  signal.removeEventListener('abort', cancel);
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const isUnknown = answers.every(
    (answer) => answer.status === 'rejected' && unknown.includes((answer.reason as { code: string }).code),
  );
  // Search domains, for one, are the system's affair.
  return isUnknown ? (await lookup(name, { all: true })).map(({ address }) => address) : found;
};

/** The addresses that a hosts file has for the name. */
export function findInHosts(text: string, name: string): string[] {
  const wanted = name.toLowerCase().replace(/\.$/, '');
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/);
    return names.some((other) => other.toLowerCase() === wanted) ? [address] : [];
  });
}
