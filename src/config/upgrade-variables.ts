// The variables of upgrades: of every job, of the Kubernetes executor and of the simulation.
import * as z from 'zod';
import { isRegistryHost } from '../upgrades/executors/images/image.ts';
import {
  type TemplateStepId,
  isTemplateStepId,
  stepIds,
  templateStepIds,
  templateSteps,
} from '../upgrades/executors/steps.ts';
import { integerText, splitList } from './value-schemas.ts';

export const upgradeExecutor = z
  .enum(['simulated', 'kubernetes'], 'must be simulated or kubernetes')
  .default('simulated')
  .describe(
    'How upgrades run: simulated changes nothing outside Steward, kubernetes updates the workloads of one namespace (see docs/operate/kubernetes.md).',
  );

export const upgrades = {
  MANIFEST_FILE: z
    .string()
    .optional()
    .describe(
      'A version manifest to use while none is imported, as importManifest accepts it. Default: a built-in sample.',
    ),
  INSTALLED_VERSION: z
    .string()
    .optional()
    .describe(
      'The version that is installed when the first start begins: the id of a version of the manifest, or a version and build such ' +
        'as 11.5.0.6815. Default: simulated: the oldest release of the manifest; kubernetes: the version whose images the workloads have.',
    ),
  UPGRADE_STEP_TIMEOUT_SECONDS: integerText(1, 86_400)
    .default(1800)
    .describe('How long one step of an upgrade may take before the job fails.'),
  REVERT_TIMEOUT_SECONDS: integerText(1, 86_400)
    .default(900)
    .describe(
      'How long a failed or cancelled patch may take to revert all of its workloads. Then the job ends, and resume continues.',
    ),
  SCHEDULE_GRACE_MINUTES: integerText(0, 10_080)
    .default(60)
    .describe(
      'How late a scheduled job may start, if no process ran or no maintenance window was open at its time. Then it ends as failed.',
    ),
  JOB_HISTORY: integerText(1, 100_000)
    .default(500)
    .describe('How many jobs before the newest one keep their messages.'),
};

export const kubernetes = {
  KUBECONFIG: z
    .string()
    .optional()
    .describe('kubernetes: a kubeconfig file. Default: the cluster that the process runs in.'),
  KUBERNETES_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the name of a namespace')
    .optional()
    .describe(
      'kubernetes: the namespace of the workloads. Default: the namespace of the kubeconfig context, or of the pod.',
    ),
  UPGRADE_PARALLELISM: integerText(1, 100)
    .default(1)
    .describe('kubernetes: how many workloads are updated, or put back, at the same time.'),
  ROLLOUT_TIMEOUT_SECONDS: integerText(1, 86_400)
    .default(600)
    .describe('kubernetes: how long a rollout without a deadline, or a pod of a step, may stand still.'),
  CLUSTER_PATIENCE_SECONDS: integerText(1, 86_400)
    .default(300)
    .describe(
      'kubernetes: how long a step waits for an API server that is unavailable before the job fails.',
    ),
  OPTIONAL_CONTAINERS: z
    .string()
    .transform((text) => splitList(text).filter((name) => name !== ''))
    .default([])
    .describe(
      'kubernetes: containers of a version that the namespace may lack: a comma-separated list of names, or * for all.',
    ),
  STEP_TEMPLATES: z
    .enum(['on', 'off'], 'must be on or off')
    .default('on')
    .describe(
      'kubernetes: on: Jobs made from step templates perform the steps of an upgrade that are no updates of workloads, and Steward ' +
        'needs permissions for Jobs (see docs/operate/step-templates.md). off: such steps are skipped.',
    ),
};

export const images = {
  IMAGE_REGISTRY: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(\/[a-z0-9._-]+)*$/,
      'must be a registry such as registry.example.com/team',
    )
    .optional()
    .describe(
      'kubernetes: the registry of images that name none, such as registry.example.com/team. It applies to containers whose ' +
        'current image names no registry either.',
    ),
  IMAGE_CHECK: z
    .enum(['auto', 'required', 'off'], 'must be auto, required or off')
    .default('auto')
    .describe(
      'kubernetes: whether plan and upgrade look up the new images in their registries. A missing image blocks the upgrade. ' +
        'auto: an image that cannot be looked up is a notice. required: it blocks the upgrade too. off: no lookup.',
    ),
  REGISTRY_AUTH_FILE: z
    .string()
    .optional()
    .describe(
      'kubernetes: a file with the credentials for the registries, in the format of docker login. Credential helpers are not ' +
        'supported. Steward reads the file for each check. Default: no credentials.',
    ),
  REGISTRY_INSECURE: z
    .string()
    .transform(readRegistryHosts)
    .default(() => new Set<string>())
    .describe(
      'kubernetes: registries that Steward asks over plain HTTP, and that may have a loopback or link-local address: a ' +
        'comma-separated list of hosts as the images name them, such as registry.internal:5000.',
    ),
};

/** An address has no port if it is the default port, so the hosts are normalized in the same way. */
function readRegistryHosts(text: string, context: z.RefinementCtx): ReadonlySet<string> {
  const hosts = new Set<string>();
  for (const entry of splitList(text.toLowerCase())) {
    if (!isRegistryHost(entry)) {
      context.addIssue(
        `must be a comma list of hosts, each with its port if the images name one, such as registry.internal:5000; "${entry}" is not one`,
      );
      return z.NEVER;
    }
    hosts.add(new URL(`http://${entry}`).host);
  }
  return hosts;
}

export const simulation = {
  UPGRADE_STEP_MS: integerText(0, 600_000)
    .default(95)
    .describe('simulated: how long each step takes, in milliseconds.'),
  SIMULATED_FAILURES: z
    .string()
    .transform(readFailures)
    .default(() => new Map<string, number>())
    .describe(
      'simulated: what fails: a comma-separated list of containers, and of steps as @ and their id. NAME fails always, NAME:2 fails ' +
        'twice, and so does @database-engine:2.',
    ),
  SIMULATED_STEP_TEMPLATES: z
    .string()
    .transform(readTemplateSteps)
    .default([...templateSteps])
    .describe(
      'simulated: the steps that have a step template: a comma-separated list of step ids, or none. Other steps that can have one are ' +
        'skipped; hooks appear only if they are listed. Default: all steps except the hooks.',
    ),
};

function readFailures(text: string, context: z.RefinementCtx): ReadonlyMap<string, number> {
  const failures = new Map<string, number>();
  for (const entry of splitList(text)) {
    const [, at, name, times] = /^(@?)([A-Za-z0-9_.-]{1,128})(?::([1-9][0-9]{0,5}))?$/.exec(entry) ?? [];
    if (name === undefined) {
      context.addIssue(
        `must be a comma list of container names and of @ and step ids, each with how often it fails, such as MAP_SERVER:2 or ` +
          `@database-engine; "${entry}" is not one`,
      );
      return z.NEVER;
    }
    if (at === '@' && !stepIds.some((id) => id === name)) {
      context.addIssue(`must name steps by their id: ${stepIds.join(', ')}; "${name}" is not one`);
      return z.NEVER;
    }
    failures.set(at === '@' ? entry.replace(/:.*/, '') : name.toUpperCase(), Number(times ?? Infinity));
  }
  return failures;
}

function readTemplateSteps(text: string, context: z.RefinementCtx): TemplateStepId[] {
  const names = splitList(text);
  if (names.length === 1 && names[0] === 'none') return [];
  const unknown = names.filter((name) => !isTemplateStepId(name));
  if (unknown.length > 0) {
    context.addIssue(
      `must be none or a comma list of step ids: ${templateStepIds.join(', ')}; "${unknown.join('", "')}" is not one`,
    );
    return z.NEVER;
  }
  return names.filter(isTemplateStepId);
}
