// SQL conditions that check whether a rule ran on an outdated state.
import { cellKind, isOtherServer } from '../../../store/postgres/replica.ts';
import { webhookSettings } from '../../settings.ts';
import { webhooks } from '../../webhook.ts';

/** For a rule that ran on a state that is newer than its call: what changes after the call does not matter. */
export const anyVersion = Number.MAX_SAFE_INTEGER;

/** Parameters: the version and the server of the state on which the rule ran, and the newest known migration. */
type Seen = { readonly seen: string; readonly server: string; readonly known: string };

/**
 * A webhook has changed since, the server is another one, or the schema has a contracting migration that this
 * program does not know.
 */
export function arePublicationsOutdated({ seen, server, known }: Seen): string {
  return `(exists (select from state where kind = '${webhooks.name}' and version > ${seen})
    or ${isOtherServer(server)} or (select oldest_writer from clock) > ${known})`;
}

/** The same, or the settings have changed. */
export function areOutcomesOutdated(parameters: Seen): string {
  return `(${arePublicationsOutdated(parameters)} or exists (
    select from state where kind = '${cellKind}' and key = '${webhookSettings.name}' and version > ${parameters.seen}))`;
}
