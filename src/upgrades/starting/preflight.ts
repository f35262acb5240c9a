// Checks an upgrade or a rollback before anything changes, and builds its plan. Finds every problem at once.
import { maxProblems, problemsOf } from '../../lib/errors.ts';
import { formatList } from '../../lib/format.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { truncate } from '../../lib/text.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import { uploads } from '../../uploads/upload.ts';
import type { Executor } from '../executors/executor.ts';
import type { ScheduledRequest } from '../jobs/job-table.ts';
import type { NewJob } from '../jobs/job.ts';
import { findJobToRepair, reasonNotToStart, repairs } from '../jobs/job-to-repair.ts';
import {
  afterRollback,
  deployment,
  findVersion,
  currentManifest,
  importedManifest,
  installCheck,
  newestInstalled,
  readDeployment,
  rollbackTargets,
  unknownVersion,
} from '../versions/deployment.ts';
import { type Hop, findPath, pathTo, planHops } from '../versions/hops.ts';
import { type Version, formatVersion, maxLengths } from '../versions/manifest.ts';
import { type PlannedSteps, planRollback, planSteps, updatedWorkloads } from '../planning/plan.ts';
import {
  type SettingFile,
  type SettingProblem,
  type SubmittedSettings,
  findUploadsToRead,
  jsonFileLimits,
  readSettingFile,
  readSettings,
  tooLargeForJson,
} from '../planning/settings.ts';
import {
  type Findings,
  type Inventory,
  type MovePlan,
  maxWorkloads,
  templatePath,
} from '../executors/workloads.ts';
import { movesBetween } from '../versions/moves.ts';

export type PreparedJob = Omit<NewJob, 'id' | 'startedBy' | 'runner' | 'to' | 'ignoresWindows'> & {
  readonly to: string | null;
  readonly problems: readonly SettingProblem[];
  readonly notices: readonly string[];
  /** The state from which the job was prepared. The job may start only if it is still the same. */
  readonly basis: ReturnType<typeof readBasis>;
};

function readBasis(reader: Reader) {
  return { present: reader.read(deployment), imported: reader.read(importedManifest) };
}

export function hasSameBasis(reader: Reader, { basis }: PreparedJob): boolean {
  const { present, imported } = readBasis(reader);
  return isSame(present, basis.present) && isSame(imported, basis.imported);
}

/** A value that nobody has written is the same object, unless the store has read everything again meanwhile. */
function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** A release cannot be rolled back. */
export function hasRelease({ plan: { hops } }: Pick<PreparedJob, 'plan'>): boolean {
  return hops.some(({ isRelease }) => isRelease);
}

/** Whether the same preparation may succeed later: an autoscaler may start or end a pod at any time. */
export function mayPass({ problems }: PreparedJob): boolean {
  return problems.length > 0 && problems.every(({ isTransient }) => isTransient === true);
}

/** Repeats a preparation for a few seconds, because a caller waits. */
export async function prepareWithPatience(
  { now, sleep }: Pick<Runtime, 'now' | 'sleep'>,
  prepare: () => Promise<PreparedJob>,
): Promise<PreparedJob> {
  for (const until = now() + 5_000; ; await sleep(1_000)) {
    const prepared = await prepare();
    if (!mayPass(prepared) || now() >= until) return prepared;
  }
}

export type UpgradeValues = Omit<ScheduledRequest, 'digest'> & {
  readonly licenseFile?: { readonly filename: string; readonly bytes: Uint8Array } | undefined;
  readonly versionManifestFile?: readonly Version[] | undefined;
};

/** A lookup of images may take a minute. */
type PrepareOptions = { readonly checkImages: boolean };

/** Reads the inputs of the request, and prepares the job that they give in the present state. */
export async function prepareRequest(
  store: ReadableStore,
  executor: Executor,
  values: UpgradeValues,
  { checkImages }: PrepareOptions = { checkImages: true },
): Promise<PreparedJob> {
  const { versionManifest, upgradeSettings, updateToLatestPatch, licenseFile, versionManifestFile } = values;
  const inventory = await executor.inventory();
  // Another process may have stored a file a moment ago.
  await store.refresh();
  if (!store.read(deployment)) throw unknownVersion(inventory.recognize(currentManifest(store)).reason);
  const files = await readFiles(store, values);
  const submitted: SubmittedSettings = {
    upgradeSettings,
    updateToLatestPatch,
    licenseFile: licenseFile && readSettingFile(licenseFile.filename, licenseFile.bytes),
    findUpload: (id) => {
      const upload = store.get(uploads, id);
      const jsonProblem = 'was not checked; send the request again.';
      return upload && (files.get(id) ?? { name: upload.itemName, bytes: undefined, jsonProblem });
    },
  };
  const prepared = prepareUpgrade(store, versionManifest, submitted, versionManifestFile, inventory);
  const used = new Set(prepared.plan.steps.map(({ template }) => templatePath(template ?? '')));
  const templates = inventory.templates.filter(({ name }) => used.has(name));
  return checkImages
    ? withFindings(prepared, await executor.checkImages([...updatedWorkloads(prepared.plan), ...templates]))
    : prepared;
}

function withFindings(prepared: PreparedJob, found: Findings | undefined): PreparedJob {
  return {
    ...prepared,
    problems: [...prepared.problems, ...(found?.problems ?? [])].slice(0, maxProblems),
    notices: [...prepared.notices, ...(found?.notices ?? [])].slice(0, maxProblems),
  };
}

/** Looks up the images that are not recorded: the nodes may never have had them. */
export async function prepareCheckedRollback(
  store: ReadableStore,
  executor: Executor,
  id: string,
): Promise<PreparedJob> {
  const prepared = prepareRollback(store, id, await executor.inventory());
  const unrecorded = prepared.plan.steps.flatMap(({ workload }) => (workload?.isOfVersion ? workload : []));
  const swapped = unrecorded.map((workload) => ({
    ...workload,
    parts: workload.parts.map((part) => ({ ...part, image: part.formerImage ?? part.image })),
  }));
  return withFindings(prepared, await executor.checkImages(swapped));
}

async function readFiles(
  store: ReadableStore,
  { versionManifest, versionManifestFile, upgradeSettings }: UpgradeValues,
): Promise<ReadonlyMap<string, SettingFile>> {
  const manifest = versionManifestFile ?? currentManifest(store);
  const path = findPath(manifest, store.read(deployment), versionManifest);
  const files = new Map<string, SettingFile>();
  let room = jsonFileLimits.bytesTogether;
  for (const id of findUploadsToRead(path, upgradeSettings)) {
    const upload = store.get(uploads, id);
    if (!upload) continue;
    const { itemName, size } = upload;
    const isTooLarge = size > jsonFileLimits.bytes;
    if (!isTooLarge) room -= size;
    const bytes = isTooLarge || room < 0 ? undefined : await store.uploads.content(id);
    const noRoom = `exceeds the ${jsonFileLimits.bytesTogether} bytes for all JSON files of the settings.`;
    const jsonProblem = isTooLarge ? tooLargeForJson : noRoom;
    files.set(id, bytes ? readSettingFile(itemName, bytes) : { name: itemName, bytes, jsonProblem });
  }
  return files;
}

/** What an upgrade would do, and everything that blocks it. */
export async function planUpgrade(
  store: ReadableStore,
  executor: Executor,
  values: UpgradeValues,
  options?: PrepareOptions,
): Promise<PreparedJob> {
  const prepared = await prepareRequest(store, executor, values, options);
  const message = reasonNotToStart(store, prepared);
  return message === undefined ? prepared : { ...prepared, problems: [...prepared.problems, { message }] };
}

const noSteps: PlannedSteps = { steps: [], workloads: 0, parallelism: 1 };
const noPlan = { plan: { ...noSteps, hops: [] }, notices: [] } as const;

function jobFrom(reader: Reader, targetId: string) {
  const from = formatVersion(newestInstalled(readDeployment(reader)));
  return { targetId, from, uploads: [], basis: readBasis(reader) };
}

export function prepareUpgrade(
  reader: Reader,
  id: string,
  submitted: SubmittedSettings,
  requestManifest: readonly Version[] | undefined,
  inventory: Inventory,
): PreparedJob {
  const manifest = requestManifest ?? currentManifest(reader);
  const present = readDeployment(reader);
  const base = { ...jobFrom(reader, id), operation: 'upgrade', kind: 'release' } as const;
  const target = findVersion(manifest, present, id);
  if (!target) {
    const problems = [{ field: 'versionManifest', message: noSuchVersion(id) }];
    return { ...base, ...noPlan, to: null, problems };
  }
  const repair = id === newestInstalled(present).id && inventory.planRepair(present);
  const failed = findJobToRepair(reader);
  // Also without a difference: a rollback that can never succeed must not block all others for ever.
  const isWayOut = failed !== undefined && repairs(reader, failed, { operation: 'upgrade', targetId: id });
  if (repair && (repair.drift !== undefined || isWayOut)) {
    const { from } = base;
    const move = { isRelease: false, workloads: repair.workloads };
    const hop = { from, to: from, installs: [], isRelease: false, after: present };
    const drift = repair.drift === undefined ? [] : [repair.drift];
    const movePlan = { ...repair, notices: [...drift, ...repair.notices] };
    const build = () => planSteps([move], inventory.parallelism, inventory.performers);
    return { ...base, kind: 'patch', to: from, ...planJob(movePlan, [hop], build) };
  }
  const path = pathTo(manifest, present, target);
  const { uploads, updateToLatestPatch, problems } = readSettings(path ?? [target], submitted);
  const known = { ...base, kind: path && path.length > 1 ? ('release' as const) : target.type, uploads };
  if (!path) {
    const reasons = problemsOf('versionManifest', installCheck(manifest, present)(target));
    return { ...known, ...noPlan, to: formatVersion(target), problems: [...reasons, ...problems] };
  }

  const { hops, versions } = planHops(path, manifest, present, updateToLatestPatch);
  const movePlan = inventory.planMoves(versions, present);
  const build = () => {
    const rest = [...movePlan.workloads];
    const moves = hops.map(({ isRelease, installs }) => ({
      isRelease,
      workloads: rest.splice(0, installs.length),
    }));
    return planSteps(moves, inventory.parallelism, inventory.performers);
  };
  return {
    ...known,
    to: hops.at(-1)?.to ?? formatVersion(target),
    ...planJob(movePlan, hops, build, problems),
  };
}

/** The plan, and what blocks it. A plan with too many workloads has no steps. */
function planJob(
  movePlan: MovePlan,
  hops: readonly Hop[],
  build: () => PlannedSteps,
  problems: readonly SettingProblem[] = [],
): Pick<PreparedJob, 'plan' | 'problems' | 'notices'> {
  const isTooLarge = movePlan.workloads.flat().length > maxWorkloads;
  const message = `needs more than ${maxWorkloads} updates of workloads, which is the limit of one job.`;
  const tooMany = isTooLarge ? [{ field: 'versionManifest', message }] : [];
  const steps = isTooLarge ? noSteps : build();
  return {
    plan: { ...steps, hops },
    problems: [...tooMany, ...problems, ...movePlan.problems].slice(0, maxProblems),
    notices: listNotices(movePlan, steps),
  };
}

function listNotices({ notices }: MovePlan, { steps }: PlannedSteps): string[] {
  const skipped = [...new Set(steps.flatMap(({ performedBy, id }) => (performedBy === 'nobody' ? id : [])))];
  const notice = `These steps have no step template and are skipped: ${formatList(skipped)}.`;
  return [...notices.slice(0, maxProblems), ...(skipped.length > 0 ? [notice] : [])];
}

export function noSuchVersion(id: string): string {
  return `there is no version with the id ${truncate(id, maxLengths.id)}.`;
}

export function prepareRollback(reader: Reader, id: string, inventory: Inventory): PreparedJob {
  const present = readDeployment(reader);
  const base = { ...jobFrom(reader, id), operation: 'rollback', kind: 'rollback' } as const;
  const targets = rollbackTargets(present);
  const target = targets.find((version) => version.id === id);
  if (!target) {
    const ids = formatList(targets.map((version) => version.id));
    const allowed = targets.length > 0 ? `possible are ${ids}` : 'no patch is installed';
    const message = `${truncate(id, maxLengths.id)} is not a rollback target; ${allowed}.`;
    return { ...base, ...noPlan, to: null, problems: [{ field: 'versionManifest', message }] };
  }
  const after = afterRollback(present, target);
  const to = formatVersion(target);
  const movePlan = inventory.planReverts(movesBetween(present, after), to, present);
  const hop = { from: base.from, to, installs: [], isRelease: false, after };
  const build = () => planRollback(movePlan.workloads.flat(), inventory.parallelism, inventory.performers);
  return { ...base, to, ...planJob(movePlan, [hop], build) };
}
