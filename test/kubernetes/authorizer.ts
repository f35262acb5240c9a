// Decides what a user may do in the fake cluster, by the Roles and ClusterRoles that are bound to the user.
import type { KubeObject } from './objects.ts';
import { resourceOf } from './resources.ts';
import type { Storage } from './storage.ts';

export type Rule = {
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  verbs: string[];
};

/** A subresource is part of the resource: `pods/status`. */
export type AccessRequest = {
  verb: string;
  group: string;
  resource: string;
  namespace?: string;
  name?: string;
};

type Role = KubeObject & { rules?: Rule[] };
type RoleBinding = KubeObject & {
  roleRef: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string }[];
};

const roles = resourceOf('roles');
const clusterRoles = resourceOf('clusterroles');
const bindings = resourceOf('rolebindings');
const clusterBindings = resourceOf('clusterrolebindings');

const accountName = /^system:serviceaccount:([^:]+):([^:]+)$/;

function isSubject({ subjects = [], metadata }: RoleBinding, user: string): boolean {
  const [, namespace, account] = accountName.exec(user) ?? [];
  return subjects.some((subject) =>
    subject.kind === 'ServiceAccount'
      ? subject.name === account && (subject.namespace ?? metadata.namespace) === namespace
      : (subject.kind === 'User' && subject.name === user) ||
        (subject.kind === 'Group' && subject.name === 'system:authenticated'),
  );
}

const has = (list: string[] | undefined, value: string) =>
  list !== undefined && (list.includes(value) || list.includes('*'));

const covers = (rule: Rule, { verb, group, resource, name = '' }: AccessRequest) =>
  has(rule.verbs, verb) &&
  has(rule.apiGroups, group) &&
  has(rule.resources, resource) &&
  (rule.resourceNames === undefined || rule.resourceNames.length === 0 || rule.resourceNames.includes(name));

/** A request without a user has all permissions. */
export function isAllowed(storage: Storage, user: string | undefined, access: AccessRequest): boolean {
  return rulesOf(storage, user, access.namespace).some((rule) => covers(rule, access));
}

/** The rules of a user in a namespace, or in the cluster. */
export function rulesOf(storage: Storage, user: string | undefined, namespace: string | undefined): Rule[] {
  if (user === undefined) return [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  const bound = [
    ...storage.list<RoleBinding>(clusterBindings),
    ...(namespace === undefined ? [] : storage.list<RoleBinding>(bindings, namespace)),
  ].filter((binding) => isSubject(binding, user));
  return bound.flatMap(({ roleRef, metadata }) => {
    const role: Role | undefined =
      roleRef.kind === 'ClusterRole'
        ? storage.get(clusterRoles, undefined, roleRef.name)
        : storage.get(roles, metadata.namespace, roleRef.name);
    return role?.rules ?? [];
  });
}
