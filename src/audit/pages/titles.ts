// The operations of the audit trail in words: the titles that the resource tree gives them.
import { type Resource, walk } from '../../rest/resource.ts';

/** Entries whose operation is not part of the administrator tree. */
const others: Readonly<Record<string, string>> = {
  'tokens/generateToken': 'Sign in',
  'tokens/oidc/callback': 'Sign in at the identity provider',
  'tokens/revokeToken': 'Sign out',
  'system/jobs/{job}/end': 'End of the job',
};

export type OperationTitles = {
  titleOf: (operation: string) => string | undefined;
  /** The operations whose titles contain the text, ignoring case. */
  find: (text: string) => readonly string[];
};

/** The tree contains the page of the audit trail, so it is read only when the page is shown. */
export function operationTitles(tree: () => Resource): OperationTitles {
  let read: ReadonlyMap<string, string> | undefined;
  const titles = () => (read ??= readTitles(tree()));
  return {
    titleOf: (operation) => titles().get(operation),
    find: (text) =>
      [...titles()].flatMap(([operation, title]) =>
        title.toLowerCase().includes(text.toLowerCase()) ? operation : [],
      ),
  };
}

function readTitles(root: Resource): Map<string, string> {
  const titles = new Map(Object.entries(others));
  for (const { route, operation } of walk(root)) if (operation) titles.set(route, operation.title);
  return titles;
}
