// REST resource at the root of the administrator directory.
import * as z from 'zod';
import { answerObject } from '../rest/answer.ts';
import { type Resource, type View, resource } from '../rest/resource.ts';

export type InstalledVersion = { readonly version: string; readonly build: string };

const rootAnswer = answerObject('AdministrationRoot', 'The root of the administrator directory.', {
  currentVersion: z.string().describe('The installed version, for example 10.9.1.'),
  fullVersion: z.string().describe('The installed version and build, for example 10.9.1.1234.'),
  resources: z.array(z.string()).describe('The names of the resources beneath the root.'),
});

/** What the home page searches for. */
export function searchedIn(query: URLSearchParams): string {
  return (query.get('q') ?? '').trim().slice(0, 256);
}

export function rootResource(
  installed: () => InstalledVersion,
  view: View<unknown>,
  resources: Record<string, Resource>,
): Resource {
  return resource({
    title: 'Administration',
    titleOf: (_subject, query) => (query && searchedIn(query) ? `Search: ${searchedIn(query)}` : 'Home'),
    description: 'The state of this deployment.',
    access: 'member',
    answer: rootAnswer,
    resources,
    view,
    read: () => {
      const { version, build } = installed();
      return {
        currentVersion: version,
        fullVersion: `${version}.${build}`,
        resources: Object.keys(resources).sort(),
      };
    },
  });
}
