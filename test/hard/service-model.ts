// Models the service: which role may run which operation in which mode, and what it changes.
import type { Server } from '../kit/server.ts';

export const patches = ['pat_17022022_1250', 'pat_28042022_1260'] as const;

type Role = 'member' | 'publisher' | 'administrator';

export type Model = {
  now: number;
  readOnly: boolean;
  /** The number of installed patches. `job.leadsTo` is their number after the running job. */
  installed: number;
  job: { id: string; kind: 'patch' | 'rollback'; leadsTo: number; isCancelled: boolean } | null;
  lastJob: string | null;
  services: string[];
  webhooks: Record<string, { id: string; active: boolean }>;
  attempts: number;
  /** `since` distinguishes users that were added under the same name one after another. */
  ann: { role: Role; since: number } | null;
  /** Ann's tokens in the order they were issued; ended tokens stay in the list. */
  tokens: { token: string; expires: number; owner: number; isEnded: boolean }[];
};

export const emptyModel = (now: number): Model => ({
  now,
  readOnly: false,
  installed: 0,
  job: null,
  lastJob: null,
  services: [],
  webhooks: {},
  attempts: 3,
  ann: null,
  tokens: [],
});

export type Caller = { readonly token: string; readonly role: Role | 'anonymous' | 'unknown' };

/** The caller with the given number in a sequence. */
export function callerOf(model: Model, number: number, token: Server['token']): Caller {
  const fixed: Caller[] = [
    { token: token('administrator'), role: 'administrator' },
    { token: token('publisher'), role: 'publisher' },
    { token: token('member'), role: 'member' },
    { token: '', role: 'anonymous' },
    { token: 'made up', role: 'unknown' },
  ];
  const own = model.tokens[number - fixed.length];
  if (!own) return fixed[number % fixed.length] as Caller;
  const isGood = !own.isEnded && own.expires > model.now && own.owner === model.ann?.since;
  return { token: own.token, role: isGood && model.ann ? model.ann.role : 'unknown' };
}

/**
 * An operation: the role it needs, and its effect. `run` changes the model and returns 200, or returns the status
 * of an error.
 */
export type Operation = {
  readonly path: (model: Model) => string;
  readonly needs: Role | 'anyone';
  readonly isWrite: boolean;
  readonly isChildOfUpgrades?: boolean;
  readonly whileReadOnly?: true;
  readonly fields: (model: Model) => Record<string, string>;
  readonly run: (model: Model) => number;
  /** Copies ids and tokens from the response into the model. */
  readonly learn?: (model: Model, answer: Answer) => void;
};

export type Answer = {
  webhook?: { id: string };
  jobId?: string;
  token?: string;
  expires?: number;
  deliveries?: number;
};

const ranks = ['unknown', 'anonymous', 'member', 'publisher', 'administrator'];

export function isReadOnly({ readOnly, job }: Model): boolean {
  return readOnly || job !== null;
}

/** Runs the checks in the order of the server; the first that fails determines the status. */
export function expectedStatus(model: Model, caller: Caller, operation: Operation): number {
  if (operation.needs !== 'anyone') {
    if (caller.role === 'anonymous' || caller.role === 'unknown') return 401;
    if (ranks.indexOf(caller.role) < ranks.indexOf(operation.needs)) return 403;
  }
  if (operation.isChildOfUpgrades && model.job) return 409;
  if (operation.isWrite && !operation.whileReadOnly && isReadOnly(model)) return 503;
  return operation.run(model);
}

const write = { isWrite: true } as const;
const none = () => ({});
const password = 'the password of Ann';

export const operations = {
  createService: (name: string): Operation => ({
    ...write,
    needs: 'publisher',
    path: () => 'admin/services/createService',
    fields: () => ({ serviceName: name, type: 'MapServer' }),
    run: (model) => (model.services.includes(name) ? 409 : (model.services.push(name), 200)),
  }),
  deleteService: (name: string): Operation => ({
    ...write,
    needs: 'publisher',
    path: () => `admin/services/${name}.MapServer/delete`,
    fields: none,
    run: (model) => {
      if (!model.services.includes(name)) return 404;
      model.services = model.services.filter((one) => one !== name);
      return 200;
    },
  }),
  createWebhook: (name: string): Operation => ({
    ...write,
    needs: 'administrator',
    path: () => 'admin/services/webhooks/create',
    fields: () => ({ name, hookUrl: 'https://hooks.example/in', changeTypes: 'Tested' }),
    run: (model) => (model.webhooks[name] ? 409 : ((model.webhooks[name] = { id: '', active: true }), 200)),
    learn: (model, { webhook }) => (model.webhooks[name] = { active: true, id: webhook?.id ?? '' }),
  }),
  setWebhook: (name: string, act: 'activate' | 'deactivate' | 'delete'): Operation => ({
    ...write,
    needs: 'administrator',
    fields: none,
    path: (model) => `admin/services/webhooks/${model.webhooks[name]?.id || 'none'}/${act}`,
    run: (model) => {
      const webhook = model.webhooks[name];
      if (!webhook) return 404;
      if (act === 'delete') Reflect.deleteProperty(model.webhooks, name);
      else webhook.active = act === 'activate';
      return 200;
    },
  }),
  publish: (): Operation => ({
    ...write,
    needs: 'publisher',
    path: () => 'admin/services/webhooks/publish',
    fields: () => ({ changeType: 'Tested' }),
    run: () => 200,
  }),
  setAttempts: (attempts: number): Operation => ({
    ...write,
    needs: 'administrator',
    path: () => 'admin/services/webhooks/settings',
    fields: () => ({ notificationAttempts: String(attempts) }),
    run: (model) => (attempts < 1 || attempts > 5 ? 400 : ((model.attempts = attempts), 200)),
  }),
  setMode: (readOnly: boolean): Operation => ({
    ...write,
    whileReadOnly: true,
    needs: 'administrator',
    path: () => 'admin/mode/update',
    fields: () => ({ isReadOnly: String(readOnly) }),
    run: (model) => (model.job && !readOnly ? 409 : ((model.readOnly = readOnly), 200)),
  }),
  upgrade: (patch: number): Operation => ({
    ...write,
    needs: 'administrator',
    isChildOfUpgrades: true,
    path: () => 'admin/system/upgrades/upgrade',
    fields: () => ({ versionManifest: JSON.stringify({ id: patches[patch] }) }),
    run: (model) => {
      if (patch < model.installed) return 400;
      model.job = { id: '', kind: 'patch', leadsTo: patch + 1, isCancelled: false };
      return 200;
    },
    learn: noteJob,
  }),
  rollback: (): Operation => ({
    ...write,
    needs: 'administrator',
    isChildOfUpgrades: true,
    path: () => 'admin/system/upgrades/rollback',
    fields: () => ({ versionManifest: JSON.stringify({ id: patches[0] }) }),
    run: (model) => {
      if (model.installed !== 2) return 400;
      model.job = { id: '', kind: 'rollback', leadsTo: 1, isCancelled: false };
      return 200;
    },
    learn: noteJob,
  }),
  cancel: (): Operation => ({
    ...write,
    whileReadOnly: true,
    needs: 'administrator',
    fields: none,
    path: ({ lastJob }) => `admin/system/jobs/${lastJob ?? 'none'}/cancel`,
    run: (model) => {
      if (model.lastJob === null) return 404;
      if (model.job?.kind !== 'patch') return 409;
      model.job.isCancelled = true;
      return 200;
    },
  }),
  addAnn: (role: Role): Operation => ({
    ...write,
    needs: 'administrator',
    path: () => 'admin/security/users/add',
    fields: () => ({ username: 'ann', password, role }),
    run: (model) => (model.ann ? 409 : ((model.ann = { role, since: model.tokens.length }), 200)),
  }),
  changeAnn: (role: Role): Operation => ({
    ...write,
    needs: 'administrator',
    path: () => 'admin/security/users/update',
    fields: () => ({ username: 'ann', role }),
    run: (model) => (model.ann ? ((model.ann.role = role), 200) : 400),
  }),
  removeAnn: (): Operation => ({
    ...write,
    needs: 'administrator',
    path: () => 'admin/security/users/remove',
    fields: () => ({ username: 'ann' }),
    run: (model) => (model.ann ? ((model.ann = null), 200) : 400),
  }),
  signIn: (isRight: boolean): Operation => ({
    ...write,
    whileReadOnly: true,
    needs: 'anyone',
    path: () => 'tokens/generateToken',
    fields: () => ({
      username: 'ann',
      password: isRight ? password : 'something else',
      expiration: '5',
    }),
    run: (model) => (model.ann && isRight ? 200 : 401),
    learn: ({ ann, tokens }, { token = '', expires = 0 }) =>
      tokens.push({ token, expires, owner: ann?.since ?? -1, isEnded: false }),
  }),
  revoke: (number: number): Operation => ({
    ...write,
    whileReadOnly: true,
    needs: 'anyone',
    path: () => 'tokens/revokeToken',
    fields: ({ tokens }) => ({ token: tokens[number]?.token ?? 'none' }),
    run: ({ tokens }) => {
      if (tokens[number]) tokens[number].isEnded = true;
      return 200;
    },
  }),
} as const;

function noteJob(model: Model, { jobId = '' }: Answer): void {
  model.lastJob = jobId;
  if (model.job) model.job.id = jobId;
}

/** Advances the model by a time in which every job ends. */
export function letTimePass(model: Model, ms: number): void {
  model.now += ms;
  if (model.job && !model.job.isCancelled) model.installed = model.job.leadsTo;
  model.job = null;
}
