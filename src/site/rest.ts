// REST edge of the site: the admin root and `mode` (contract 1 and 6).
import { type Resource, operation, resource, success } from '../rest/directory.ts';
import { boolean, clearable, required, text } from '../rest/fields.ts';
import type { Store } from '../store/store.ts';
import { deployment } from './deployment.ts';
import { currentMode, setMode } from './mode.ts';

export function describeRoot(store: Store, resources: Record<string, Resource>): Resource {
  return resource({
    title: 'Administration',
    description: 'The administrator directory of this deployment.',
    access: 'member',
    resources,
    read: () => {
      const { version, build } = store.read(deployment);
      return {
        currentVersion: version,
        fullVersion: `${version}.${build}`,
        resources: Object.keys(resources).sort(),
      };
    },
  });
}

export function describeMode(store: Store): Resource {
  return resource({
    title: 'Mode',
    description: 'Whether the system accepts changes, and why not.',
    access: 'member',
    read: () => currentMode(store),
    operations: {
      update: operation({
        title: 'Update mode',
        description: 'Puts the system into read-only mode or takes it out.',
        access: 'administrator',
        effect: 'writes',
        whileReadOnly: 'allowed',
        fields: {
          isReadOnly: required(boolean('Whether changes are refused.')),
          message: clearable(text('What people are told while the system is read-only.', { to: 1000 })),
        },
        present: () => {
          const { isReadOnly, message } = store.read(setMode);
          return { isReadOnly: String(isReadOnly), message };
        },
        run: async ({ values: { isReadOnly, message } }) => {
          await store.update((transaction) => {
            transaction.write(setMode, { isReadOnly, message: message ?? transaction.read(setMode).message });
          });
          return success;
        },
      }),
    },
  });
}
