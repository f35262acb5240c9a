// What the compiler requires of the description of an operation.
import { expect, it } from 'vitest';
import { clearable, text } from '../../src/rest/field-types.ts';
import { operation } from '../../src/rest/operation.ts';

const fields = { owner: clearable(text({ to: 64 })).meta({ description: 'The owner.' }) };
const described = { title: 'Edit', description: 'Changes the thing.', fields, run: () => ({ json: {} }) };

it('shows the stored value of each field that a blank text empties', () => {
  // @ts-expect-error -- sending the form unchanged would empty the owner
  operation(described);
  // @ts-expect-error -- the owner is missing
  operation({ ...described, present: () => ({ name: 'a' }) });
  const edit = operation({ ...described, present: () => ({ owner: 'a' }) });
  expect(edit.present(undefined)).toEqual({ owner: 'a' });
});
