// Resolves the names of hosts for outgoing connections: from the hosts file, then by DNS, and with the lookup of
// the operating system only if DNS does not know the name. That lookup blocks one of few threads, so that a few
// names without an answer would block all others.
import { Resolver, lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import type { Resolve } from './guarded-connector.ts';

const hostsFile = '/etc/hosts';

/** DNS does not know the name, or there is no DNS server. */
const unknownCodes = ['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'];

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
    (answer) =>
      answer.status === 'rejected' && unknownCodes.includes((answer.reason as { code: string }).code),
  );
  // The operating system may know more names, for example with search domains.
  return isUnknown ? (await lookup(name, { all: true })).map(({ address }) => address) : found;
};

export function findInHosts(text: string, name: string): string[] {
  const wanted = name.toLowerCase().replace(/\.$/, '');
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/);
    return names.some((other) => other.toLowerCase() === wanted) ? [address] : [];
  });
}
