// The sentence of an entry of the audit trail. Its subject is the user, or the target of what the server did.
import type { AuditEntry } from '../../store/audit-entry.ts';

/** The name of the target stands between the two parts. */
export type Sentence = { readonly before: string; readonly after: string };

/** The other operations have the past tense of their title. */
const predicates: Readonly<Record<string, string>> = {
  'Sign in': 'signed in',
  'Sign in at the identity provider': 'signed in at the identity provider',
  'Sign out': 'signed out',
  'Adopt a version': 'adopted a version',
  'Change password': 'changed their password',
  'Dismiss undelivered': 'dismissed what was not delivered to',
  'End session': 'ended a session',
  'End sessions': 'ended the sessions of',
  Ping: 'pinged',
  'Redeliver event': 'redelivered an event to',
  'Redeliver events': 'redelivered events to',
  'Rotate key': 'rotated the key of',
  'Update mode': 'changed the message of read-only mode',
};

const irregular: Readonly<Record<string, string>> = { Cancel: 'cancelled', Stop: 'stopped' };

export function sentenceOf(entry: AuditEntry, title: string): Sentence {
  const { operation, user, outcome, changes } = entry;
  const changedTo = (name: string) => changes.find(({ field }) => field === name)?.after;
  if (operation === 'system/jobs/{job}/end') {
    const reason = changedTo('reason');
    const end =
      outcome === 'failed' ? 'failed' : changedTo('state') === 'cancelled' ? 'was cancelled' : 'succeeded';
    return { before: '', after: ` ${end}${typeof reason === 'string' ? `: ${reason}` : ''}` };
  }
  if (user === null && operation.endsWith('/{webhook}/deactivate'))
    return { before: '', after: ' was deactivated after too many failures' };
  if (outcome !== 'success') return { before: `tried to ${lowerFirst(title)}`, after: '' };
  if (title === 'Update mode' && changedTo('isReadOnly') !== undefined) {
    const message = changedTo('message');
    const isOn = changedTo('isReadOnly') === true;
    return {
      before: `turned read-only mode ${isOn ? 'on' : 'off'}`,
      after: isOn && typeof message === 'string' && message !== '' ? `: ${message}` : '',
    };
  }
  if (title === 'Upgrade' || title === 'Rollback')
    return {
      before: changedTo('state') === 'scheduled' ? 'scheduled the job' : 'started the job',
      after: '',
    };
  return { before: predicates[title] ?? inPast(title), after: '' };
}

/** `Create service` → `created the service`. */
function inPast(title: string): string {
  const [verb = '', ...object] = title.split(' ');
  const past = irregular[verb] ?? `${verb.toLowerCase()}${verb.endsWith('e') ? 'd' : 'ed'}`;
  return [past, ...(object.length > 0 ? ['the', ...object] : [])].join(' ');
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
