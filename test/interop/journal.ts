// The journal of the control API on a server of the tests: each call of a SOAP toolkit must be found in it.
import { expect } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import { ControlClock } from '../../src/testing/clock.ts';
import { addControlHooks } from '../../src/testing/hooks.ts';
import { Journal } from '../../src/testing/journal.ts';
import { FailureRules } from '../../src/testing/rule.ts';
import { type ServerOptions, namespace } from '../kit/server.ts';

/** The operations that the programs of the toolkits call. */
const called = [
  'GetMessageVersion',
  'GetMessageFormats',
  'GetTokenServiceURL',
  'GetFolders',
  'GetServiceDescriptions',
  'RequiresTokens',
  'GetServiceDescriptionsEx',
];

export function createCallJournal() {
  const journal = new Journal();
  const extend: ServerOptions['extend'] = (http) =>
    addControlHooks(http, {
      clock: new ControlClock(realRuntime, { advancedMs: 0, frozenAt: 0 }),
      rules: new FailureRules(),
      journal,
      catalogPath: '/services',
      catalogNamespace: namespace,
      real: realRuntime,
      ended: new AbortController().signal,
      onRoute: () => undefined,
    });

  /** Expects a call of each of these operations, and the fault about an unknown folder, since the last call of this function. */
  function expectCalls(): void {
    const { requests } = journal.page({}, 0, 1000);
    journal.clear();
    for (const operation of called) {
      const call = requests.find(({ soapOperation }) => soapOperation === operation);
      expect(call?.request.body, operation).toContain(operation);
      expect(call?.response.body, operation).toContain('Envelope');
    }
    const fault = requests.find(({ faultElement }) => faultElement === 'FolderName');
    expect(fault?.fault).toMatch(/^There is no folder named Nowhere/);
  }

  return { extend, expectCalls };
}
