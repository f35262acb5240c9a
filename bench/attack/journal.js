// Attacks on test control: bodies that are hard to search for secrets, which the journal masks.
import { fetch } from 'undici';

const bodies = [
  `--x\n${'name='.repeat(12_000)}`,
  `{${'<input name=""'.repeat(4_500)}`,
  'name=a\n'.repeat(9_000),
];

export const journalAttacks = {
  'bodies that are hard to mask, for the journal of test control, 150': {
    env: { TEST_CONTROL: 'true', TEST_CONTROL_TOKEN: 'a-token-of-attacks' },
    async attack({ baseUrl }) {
      const counts = {};
      for (let n = 0; n < 50; n += 1)
        for (const body of bodies) {
          const { status } = await fetch(`${baseUrl}/nowhere`, { method: 'POST', body });
          counts[status] = (counts[status] ?? 0) + 1;
        }
      return counts;
    },
  },
};
