// The message codes of upgrade jobs and their texts. Clients parse some of these texts, so they must not change.

export type Message = { readonly code: number; readonly message: string; readonly when: number };

export type Facts = {
  readonly operation: 'upgrade' | 'rollback';
  readonly from: string;
  readonly to: string;
  readonly name: string;
  readonly image: string;
  readonly done: number;
  readonly total: number;
  readonly elapsedMs: number;
  readonly cause: string;
  /** Whether nobody performs the step, because it has no step template. */
  readonly isSkipped: boolean;
  /** Whether the step has changed the workload. */
  readonly isPatched: boolean;
  /** The result of the upgrade of the database engine, as a JSON object. */
  readonly databases: string;
  /** The name of the Job that performs the step. */
  readonly stepJob: string;
  /** As ISO 8601 in UTC. */
  readonly startAt: string;
};

const progress = ({ done, total, elapsedMs }: Facts) =>
  `${done} out of ${total} deployments updated. ` +
  `Elapsed: ${elapsedMs} milliseconds (approximately ${Math.round(elapsedMs / 60_000)} minutes).`;

function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const [hh, min, sec] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return `${hh} hh, ${min} min, ${sec} sec, ${ms % 1000} millisec`;
}

type Text = ((facts: Facts) => string) & { readonly isBeforeWork?: true };

/** The message is recorded when the Job of its step was created. All others are recorded after its work. */
const beforeWork = (text: (facts: Facts) => string): Text =>
  Object.assign(text, { isBeforeWork: true } as const);

const texts = {
  2010: ({ from, to }) => `Upgrade from ${from} to ${to} started.`,
  2011: ({ operation, elapsedMs }) =>
    `${operation === 'rollback' ? 'Rollback' : 'Upgrade'} completed in ${duration(elapsedMs)}.`,
  2012: ({ from, to }) => `The deployment was upgraded successfully from ${from} to ${to}.`,
  2038: ({ name, image, isPatched }) =>
    isPatched
      ? `The workload ${name} was updated with the image ${image}.`
      : `The workload ${name} already has the image ${image}.`,
  2072: ({ from, to }) => `Rollback from ${from} to ${to} started.`,
  2087: () => 'The primary instance of the relational database is set to read-only mode.',
  2090: () => 'The standby of the relational database is promoted to primary.',
  2092: () => 'A new standby of the relational database is added and replication is set up.',
  2093: () => 'The new primary of the relational database is set to read-write mode.',
  2094: () => 'The relational database is validated.',
  2101: ({ name }) => `Release upgrade of the deployment ${name} started.`,
  2103: ({ name }) => `Release upgrade of the deployment ${name} completed.`,
  2108: () => 'Release upgrade of the relational database started.',
  2109: () => 'Release upgrade of the relational database completed.',
  2132: ({ name }) => `Release upgrade of the component ${name} completed.`,
  2134: ({ name }) => `Release upgrade of the component ${name} started.`,
  2144: beforeWork(() => 'Upgrade of the database engine started.'),
  2145: () => 'Upgrade of the database engine finished.',
  2148: beforeWork(() => 'Post-upgrade of the database started.'),
  2149: () => 'Post-upgrade of the database completed.',
  2151: () => 'Role change: the other parts of the deployment connect to the new primary.',
  2153: ({ databases }) => databases,
  2165: () => 'The system enters read-only mode.',
  2166: () => 'The system leaves read-only mode.',
  2168: () => 'The upgrader is launching.',
  2173: progress,
  2175: progress,
  2178: beforeWork(() => 'Refresh of auto-deployed services started.'),
  2179: () => 'Post-upgrade operations started.',
  2180: beforeWork(() => 'Post-upgrade operations for logging started.'),
  2181: () => 'Post-upgrade operations for logging succeeded.',
  2185: () => 'Refresh of auto-deployed services completed.',
  2187: beforeWork(() => 'Update of portal content started.'),
  2188: () => 'Update of portal content completed.',
  2191: beforeWork(() => 'Refresh of the portal search indices for items, groups and users started.'),
  2192: () => 'Refresh of the portal search indices for items, groups and users completed.',
  2270: () => 'An upgrade plan is being prepared.',
  2271: () => 'The upgrade plan is being executed.',
  2281: () => 'The search index is checked for the prerequisites of a direct upgrade.',
  2287: () => 'Pre-diagnostics started.',
  2288: () => 'Pre-diagnostics completed.',
  2291: ({ name }) => `Patch update of the module ${name} started.`,
  2901: ({ name, cause }) => `The job failed at the step "${name}": ${cause}`,
  2902: ({ cause }) => `The job was resumed ${cause}.`,
  2903: ({ cause }) => `The job was cancelled by ${cause}.`,
  2904: ({ name, image, isPatched }) => {
    if (image === '') return `The workload ${name} was removed: it had no former image.`;
    return `The workload ${name} ${isPatched ? 'was put back to' : 'already has'} ${image}.`;
  },
  2905: ({ from, to }) => `The deployment was rolled back from ${from} to ${to}.`,
  2906: beforeWork(({ name }) => `The hook ${name} started.`),
  2907: ({ name, stepJob }) => `The hook ${name} completed (Job ${stepJob}).`,
  2908: ({ startAt }) => `The job is scheduled for ${startAt}.`,
  2909: ({ startAt }) => `The start was moved to ${startAt}.`,
} satisfies Record<number, Text>;

export type Code = keyof typeof texts;

export const announcesStart = (code: Code): boolean => (texts[code] as Text).isBeforeWork === true;

export const codes = Object.keys(texts).map(Number) as Code[];

export function writeMessage(code: Code, facts: Facts, when: number): Message {
  const text: Text = texts[code];
  // Programs read 2153 as JSON, so it says in its own way that the step is skipped.
  const prefix = facts.isSkipped && code !== 2153 ? 'Skipped (no step template): ' : '';
  return { code, message: prefix + text(facts), when };
}
