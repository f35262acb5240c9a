// Reads manifests of Kubernetes and checks them against its schemas.
import * as client from '@kubernetes/client-node';
import { Deployment, StatefulSet } from 'kubernetes-models/apps/v1';
import { CronJob } from 'kubernetes-models/batch/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Role, RoleBinding } from 'kubernetes-models/rbac.authorization.k8s.io/v1';
import { ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount } from 'kubernetes-models/v1';

export type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
};

/**
 * Parses one YAML document. It is wrapped in a kind that the client does not know; otherwise the client would drop
 * unknown fields.
 */
export function readYaml(text: string): unknown {
  const wrapped = `apiVersion: test/v1\nkind: Wrapped\nobject:\n${text.replaceAll(/^/gm, '  ')}`;
  return client.loadYaml<{ object: unknown }>(wrapped).object;
}

export const readManifests = (yaml: string) => yaml.split(/^---$/m).map((text) => readYaml(text) as Manifest);

const models = [
  ConfigMap,
  CronJob,
  Deployment,
  Ingress,
  NetworkPolicy,
  PersistentVolumeClaim,
  PodDisruptionBudget,
  Role,
  RoleBinding,
  Secret,
  Service,
  ServiceAccount,
  StatefulSet,
];

/** Checks an object against the schemas of Kubernetes, and its field names against the types of the client. */
export function problemsOf(manifest: Manifest): string[] {
  const { apiVersion, kind } = manifest;
  const Model = models.find((one) => one.apiVersion === apiVersion && one.kind === kind);
  if (!Model) return [`unknown kind ${apiVersion} ${kind}`];
  try {
    new Model(manifest as never).validate();
  } catch (error) {
    return [(error as Error).message];
  }
  return unknownFieldsOf(manifest, `V1${kind}`, kind);
}

type Typed = { getAttributeTypeMap?: () => { baseName: string; type: string }[] };

function unknownFieldsOf(value: unknown, type: string, path: string): string[] {
  const [, item] = /^Array<(.*)>$/.exec(type) ?? [];
  if (item !== undefined)
    return (value as unknown[]).flatMap((one, index) => unknownFieldsOf(one, item, `${path}[${index}]`));
  const attributes = (client as unknown as Record<string, Typed | undefined>)[type]?.getAttributeTypeMap?.();
  if (!attributes) return [];
  return Object.entries(value as object).flatMap(([name, inner]) => {
    const attribute = attributes.find(({ baseName }) => baseName === name);
    if (!attribute) return [`unknown field ${path}.${name}`];
    return unknownFieldsOf(inner, attribute.type, `${path}.${name}`);
  });
}
