// SQL conditions that check whether a rule ran on an outdated state.
import { cellKind } from '../../../store/postgres/replica.ts';
import { webhookSettings } from '../../settings.ts';
import { webhooks } from '../../webhook.ts';

/** For a rule that ran on a state that is newer than its call: what changes after the call does not matter. */
export const anyVersion = Number.MAX_SAFE_INTEGER;

/**
 * A webhook has changed since the version `seen`, or the schema has a contracting migration above `known`. Both are
 * parameters.
 */
export function arePublicationsOutdated(seen: string, known: string): string {
  return `(exists (select from state where kind = '${webhooks.name}' and version > ${seen})
    or (select oldest_writer from clock) > ${known})`;
}

/** The same, and the settings have changed. */
export function areOutcomesOutdated(seen: string, known: string): string {
  return `(${arePublicationsOutdated(seen, known)} or exists (
    select from state where kind = '${cellKind}' and key = '${webhookSettings.name}' and version > ${seen}))`;
}
