// REST edge of the site: the admin root and `mode` (contract 1 and 6).
import { ServiceError } from '../errors.ts';
import { type Entry, type Resource, type View, operation, resource, success } from '../rest/resource.ts';
import { boolean, clearable, required, text } from '../rest/fields.ts';
import type { Store } from '../store/store.ts';
import type { Reader } from '../store/transaction.ts';
import { changeMode, currentMode, refuseWhileReadOnly, setMode } from '../mode/mode.ts';

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

/** Refuses what is closed while a job runs, and what changes something while the system is read-only. */
export function createAdmission(store: Store, isJobRunning: (reader: Reader) => boolean) {
  return ({ operation, resource }: Entry, showsForm: boolean): void => {
    if ((operation ?? resource).duringJob === 'closed' && isJobRunning(store)) {
      throw new ServiceError(
        'conflict',
        'An upgrade job is in progress; read its status on the upgrades resource.',
      );
    }
    const isGated = operation?.effect === 'writes' && operation.whileReadOnly === 'refused' && !showsForm;
    if (isGated) refuseWhileReadOnly(currentMode(store, isJobRunning(store)));
  };
}

export function modeResource(store: Store, isJobRunning: (reader: Reader) => boolean): Resource {
  return resource({
    title: 'Mode',
    description: 'Whether the system accepts changes, and why not.',
    access: 'member',
    read: () => currentMode(store, isJobRunning(store)),
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
          await store.update((transaction) =>
            changeMode(transaction, isReadOnly, message, isJobRunning(transaction)),
          );
          return success;
        },
      }),
    },
  });
}
