// REST resource at the root of the administrator directory.
import { type Resource, type View, resource } from '../rest/resource.ts';

export type InstalledVersion = { readonly version: string; readonly build: string };

export function rootResource(
  installed: () => InstalledVersion,
  view: View<unknown>,
  resources: Record<string, Resource>,
): Resource {
  return resource({
    title: 'Administration',
    description: 'The administrator directory of this deployment.',
    access: 'member',
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
