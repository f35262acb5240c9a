// The breadcrumb of a page: the titles of the resources above it, and of the items that the ids in its path name.
import { type Access, type Caller, mayCall } from '../lib/caller.ts';
import type { RestRequest } from '../rest/request.ts';
import type { Resource } from '../rest/resource.ts';
import type { Crumb } from './layout.ts';

type CrumbOptions = {
  readonly rootName: string;
  readonly caller: Caller;
  readonly href: (segments: readonly string[]) => string;
};

export function crumbsOf(
  root: Resource,
  rest: RestRequest | null,
  { rootName, caller, href }: CrumbOptions,
): Crumb[] {
  const entries = [{ name: rootName, access: root.access }, ...(rest ? entriesOf(root, rest) : [])];
  return entries.map(({ name, access }, index) =>
    mayCall(caller, access) ? { name, href: href(rest?.segments.slice(0, index) ?? []) } : { name },
  );
}

/** Ends before an item that was not found. */
function entriesOf(root: Resource, rest: RestRequest): { name: string; access: Access }[] {
  const entries: { name: string; access: Access }[] = [];
  const subjects = rest.subjects.values();
  let resource = root;
  for (const segment of rest.entry.route.split('/').filter((part) => part !== '')) {
    const operation = resource.operations[segment];
    if (operation) return [...entries, { name: operation.title, access: operation.access }];
    const item = resource.items.find(({ param }) => segment === `{${param}}`);
    const subject = item && subjects.next();
    const next = item ? item.resource : resource.resources[segment];
    if (!next || subject?.done) return entries;
    resource = next;
    entries.push({
      name: subject ? resource.titleOf(subject.value) : resource.title,
      access: resource.access,
    });
  }
  return entries;
}
