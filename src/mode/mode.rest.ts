// REST resource of the mode, and the check that refuses requests during a job or in read-only mode.
import * as z from 'zod';
import { renderAgo } from '../console/time.ts';
import { ServiceError } from '../lib/errors.ts';
import { type Html, html } from '../lib/html.ts';
import { answerObject } from '../rest/answer.ts';
import { boolean, clearable, text } from '../rest/field-types.ts';
import { operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Resource, resource } from '../rest/resource.ts';
import type { Entry } from '../rest/tree.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import {
  type Mode,
  type ModeSetting,
  changeMode,
  currentMode,
  modeSetting,
  refuseWhileReadOnly,
} from './mode.ts';

export function createAdmission(store: Reader, isJobRunning: (reader: Reader) => boolean) {
  return ({ operation, resource }: Entry, showsForm: boolean, reader: Reader = store): void => {
    if ((operation ?? resource).duringJob === 'closed' && isJobRunning(reader)) {
      throw new ServiceError(
        'conflict',
        'An upgrade job is in progress; read its status on the upgrades resource.',
      );
    }
    const changesState =
      operation?.effect === 'writes' && operation.whileReadOnly === 'refused' && !showsForm;
    if (changesState) refuseWhileReadOnly(currentMode(reader, isJobRunning(reader)));
  };
}

const modeAnswer = answerObject('Mode', 'Whether the system is read-only.', {
  isReadOnly: z.boolean(),
  reason: z
    .enum(['upgrade', 'administrator'])
    .nullable()
    .describe('Why the system is read-only. Null: it is not.'),
  message: z.string().describe('The message for users. Empty while the system is not read-only.'),
});

export function modeResource(store: ReadableStore, isJobRunning: (reader: Reader) => boolean): Resource {
  return resource({
    title: 'Read-only mode',
    description: 'Whether the system is read-only, and why.',
    access: 'member',
    answer: modeAnswer,
    read: () => currentMode(store, isJobRunning(store)),
    view: ({ now }) => modeView(currentMode(store, isJobRunning(store)), store.read(modeSetting), now),
    form: 'update',
    isOffered: () => !isJobRunning(store),
    operations: {
      update: operation({
        title: 'Update mode',
        description: 'Turns read-only mode on or off.',
        whileReadOnly: 'allowed',
        fields: {
          isReadOnly: boolean().meta({
            label: 'Read-only',
            description: 'Whether the system refuses changes.',
            choiceLabels: { true: 'on', false: 'off' },
          }),
          message: clearable(text({ to: 1000 })).meta({
            label: 'Message for users',
            description: 'What users read while the system is read-only, such as why, and until when.',
          }),
        },
        present: () => {
          const { isReadOnly, message } = store.read(modeSetting);
          return { isReadOnly: String(isReadOnly), message: isReadOnly ? message : '' };
        },
        run: async ({ values: { isReadOnly, message }, caller, update }) => {
          const change = { isReadOnly, message, by: caller?.username ?? '' };
          await update((transaction, at) =>
            changeMode(transaction, { ...change, at }, isJobRunning(transaction)),
          );
          return succeeded(`Read-only mode is ${isReadOnly ? 'on' : 'off'}.`);
        },
      }),
    },
  });
}

function modeView(mode: Mode, setting: ModeSetting, now: number): Html {
  const { isReadOnly, reason, message } = mode;
  const { setBy, setAt } = setting;
  const isSet = setBy !== null && setAt !== null;
  const origin =
    isSet && html`Turned ${setting.isReadOnly ? 'on' : 'off'} by ${setBy} ${renderAgo(setAt, now)}.`;
  return html`<div id="mode-state" data-live="5">
    <p class="claim">
      ${
        isReadOnly
          ? html`<span class="state warn">Read-only</span> Changes are refused.`
          : html`<span class="state good">Changes are accepted</span>`
      }
      ${reason === 'upgrade' ? 'The mode ends with the upgrade job.' : origin}
    </p>
    ${isReadOnly && message !== '' && html`<p>Message for users: ${message}</p>`}
  </div>`;
}
