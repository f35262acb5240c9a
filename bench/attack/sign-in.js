// Attacks on signing in: many attempts at once from many addresses of one network, as a trusted proxy forwards them;
// guessed keys; and an identity provider that does not answer.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { URLSearchParams } from 'node:url';
import { fetch } from 'undici';

/** An identity provider that accepts connections and does not answer. */
const silentProvider = createServer(() => undefined).listen(0, '127.0.0.1');
await once(silentProvider, 'listening');
silentProvider.unref();

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
  'guessed keys, 20,000': async ({ baseUrl }) => {
    const counts = {};
    for (let n = 0; n < 20_000; n += 100) {
      const guesses = Array.from({ length: 100 }, () => {
        const authorization = `Bearer stw_${randomBytes(32).toString('base64url')}`;
        return fetch(`${baseUrl}/admin/security/users`, { headers: { authorization } });
      });
      add(counts, countStatuses(await Promise.all(guesses)));
    }
    return counts;
  },
  'sign-ins at an identity provider that does not answer, 1,000': {
    env: { OIDC_ISSUER: `http://127.0.0.1:${silentProvider.address().port}`, OIDC_CLIENT_ID: 'attacks' },
    async attack({ baseUrl }) {
      const starts = Array.from({ length: 1_000 }, () =>
        fetch(`${baseUrl}/tokens/oidc/start`, { redirect: 'manual' }),
      );
      return countStatuses(await Promise.all(starts));
    },
  },
};

function add(counts, more) {
  for (const [status, count] of Object.entries(more)) counts[status] = (counts[status] ?? 0) + count;
}

export function countStatuses(responses) {
  const counts = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
