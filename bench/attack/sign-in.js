// Attacks on signing in: many attempts at once from many addresses of one network, as a trusted proxy forwards them.
import { URLSearchParams } from 'node:url';
import { fetch } from 'undici';

export const signInAttacks = {
  'sign-ins from 400 networks of one IPv6 /48': async ({ baseUrl }) => {
    const attempts = Array.from({ length: 400 }, (_, index) =>
      fetch(`${baseUrl}/tokens/generateToken`, {
        method: 'POST',
        headers: { 'x-forwarded-for': `2001:db8:1:${index.toString(16)}::1` },
        body: new URLSearchParams({ username: `user${index}`, password: 'wrong' }),
      }),
    );
    return countStatuses(await Promise.all(attempts));
  },
};

export function countStatuses(responses) {
  const counts = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
