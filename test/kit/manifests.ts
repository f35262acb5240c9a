// Reads manifests of Kubernetes, and lets the compiler check them against the types of its client.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadYaml } from '@kubernetes/client-node';
import { checkout } from './package.ts';

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
  return loadYaml<{ object: unknown }>(wrapped).object;
}

export const readManifests = (yaml: string) => yaml.split(/^---$/m).map((text) => readYaml(text) as Manifest);

const apiVersions: Record<string, string> = {
  ConfigMap: 'v1',
  CronJob: 'batch/v1',
  Deployment: 'apps/v1',
  Ingress: 'networking.k8s.io/v1',
  NetworkPolicy: 'networking.k8s.io/v1',
  PersistentVolumeClaim: 'v1',
  PodDisruptionBudget: 'policy/v1',
  Role: 'rbac.authorization.k8s.io/v1',
  RoleBinding: 'rbac.authorization.k8s.io/v1',
  Secret: 'v1',
  Service: 'v1',
  ServiceAccount: 'v1',
  StatefulSet: 'apps/v1',
  ValidatingAdmissionPolicy: 'admissionregistration.k8s.io/v1',
  ValidatingAdmissionPolicyBinding: 'admissionregistration.k8s.io/v1',
};

/** Compiles each object as a constant of its type: the compiler reports wrong types, missing fields and unknown fields. */
export function problemsOf(manifests: readonly Manifest[]): string[] {
  const unknown = manifests.filter(({ apiVersion, kind }) => apiVersions[kind] !== apiVersion);
  const constants = manifests.map((manifest, index) => {
    // The client cannot call a field "from", a word of the language.
    const literal = JSON.stringify(manifest, null, 2).replaceAll('"from":', '"_from":');
    return `export const ${manifest.kind}${index}: client.V1${manifest.kind} = ${literal};\n`;
  });
  const folder = mkdtempSync(join(tmpdir(), 'steward-manifests-'));
  try {
    symlinkSync(join(checkout, 'node_modules'), join(folder, 'node_modules'));
    const lines = ["import type * as client from '@kubernetes/client-node';\n", ...constants]
      .join('')
      .split('\n');
    writeFileSync(join(folder, 'manifests.ts'), lines.join('\n'));
    const tsc = join(checkout, 'node_modules/@typescript/native/bin/tsc');
    const options =
      '--noEmit --pretty false --strict --skipLibCheck --module nodenext --target es2023 --types node';
    const args = [tsc, ...options.split(' '), 'manifests.ts'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    return [
      ...unknown.map(({ apiVersion, kind }) => `unknown kind ${apiVersion} ${kind}`),
      ...[...stdout.matchAll(/^manifests\.ts\((\d+),.*: (error .*)$/gm)].map(
        ([, line, error]) => `${lines[Number(line) - 1]?.trim()} ${error}`,
      ),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
