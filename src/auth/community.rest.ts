// REST resource of the signed-in user for clients: `community/self` beneath the token service.
import * as z from 'zod';
import { roles } from '../lib/caller.ts';
import { answerObject } from '../rest/answer.ts';
import { type Resource, folder, resource } from '../rest/resource.ts';
import type { ReadableStore } from '../store/store.ts';
import { requireOwnUser } from './user.ts';

const communitySelfAnswer = answerObject('CommunitySelf', 'The user of the token.', {
  username: z.string(),
  role: z.enum(roles),
  fullName: z.string().describe('The user name.'),
});

export function communityResource(store: ReadableStore): Resource {
  const self = resource({
    title: 'Signed-in user',
    description: 'The user of the token.',
    access: 'member',
    answer: communitySelfAnswer,
    read: ({ caller }) => {
      const { username, role } = requireOwnUser(store, caller);
      return { username, role: caller?.role ?? role, fullName: username };
    },
  });
  return folder(
    { title: 'Community', description: 'The signed-in user, for clients.', access: 'member' },
    { self },
  );
}
