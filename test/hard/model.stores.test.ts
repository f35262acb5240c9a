// Sends random sequences of operations of several clients, one or two at a time, and compares the results with the
// model of the service.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Server, startServer } from '../kit/server.ts';
import {
  type Answer,
  type Model,
  type Operation,
  callerOf,
  emptyModel,
  expectedStatus,
  isReadOnly,
  letTimePass,
  operations,
} from './service-model.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 5);
const pauseMs = 3 * 60_000;

const name = fc.constantFrom('One', 'Two');
const role = fc.constantFrom('member' as const, 'publisher' as const, 'administrator' as const);
const anyOperation: fc.Arbitrary<Operation> = fc.oneof(
  name.map(operations.createService),
  name.map(operations.deleteService),
  name.map(operations.createWebhook),
  fc
    .tuple(name, fc.constantFrom('activate' as const, 'deactivate' as const, 'delete' as const))
    .map((of) => operations.setWebhook(...of)),
  fc.constant(operations.publish()),
  fc.integer({ min: 0, max: 6 }).map(operations.setAttempts),
  fc.boolean().map(operations.setMode),
  fc.constantFrom(0, 1).map(operations.upgrade),
  fc.constant(operations.rollback()),
  fc.constant(operations.cancel()),
  role.map(operations.addAnn),
  role.map(operations.changeAnn),
  fc.constant(operations.removeAnn()),
  fc.boolean().map(operations.signIn),
  fc.nat({ max: 2 }).map(operations.revoke),
);
/** Most requests come from an administrator. Without this, the server would refuse most of them. */
const anyCaller = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat({ max: 7 }) },
);
const request = fc.record({ operation: anyOperation, caller: anyCaller });
type Request = { operation: Operation; caller: number };

const command = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(request) },
  { weight: 2, arbitrary: fc.tuple(request, request) },
  { weight: 2, arbitrary: fc.constant('time passes' as const) },
);

async function send(server: Server, model: Model, { operation, caller }: Request) {
  const { token } = callerOf(model, caller, server.token);
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  const response = await server.post(`/${operation.path(model)}`, operation.fields(model), headers);
  return { status: response.statusCode, answer: response.json<Answer>() };
}

/** The statuses that the model expects for the requests in this order, and the model after them. */
function predict(model: Model, server: Server, requests: readonly Request[]) {
  const after = structuredClone(model);
  const statuses = requests.map(({ operation, caller }) =>
    expectedStatus(after, callerOf(after, caller, server.token), operation),
  );
  return { after, statuses };
}

async function perform(server: Server, model: Model, requests: readonly Request[]): Promise<Model> {
  const answers = await Promise.all(requests.map((one) => send(server, model, one)));
  const seen = answers.map(({ status }) => status);
  const inOrder = predict(model, server, requests);
  const reversed = predict(model, server, [...requests].reverse());
  const possible = [inOrder, { after: reversed.after, statuses: reversed.statuses.toReversed() }];
  const sent = requests.map(({ operation, caller }) => [operation.path(model), caller]);
  const fitting = possible.find(({ statuses }) => statuses.join() === seen.join());
  expect(seen, `${JSON.stringify(sent)} ${JSON.stringify(answers)}`).toEqual((fitting ?? inOrder).statuses);
  const after = fitting?.after ?? inOrder.after;
  for (const [index, { operation }] of requests.entries())
    if (seen[index] === 200) operation.learn?.(after, answers[index]?.answer ?? {});
  return after;
}

async function compare(server: Server, model: Model): Promise<void> {
  const read = async <T>(path: string) =>
    (await server.get(`/admin/${path}?token=${server.token('administrator')}`)).json<T>();
  const { services } = await read<{ services: { serviceName: string; type: string }[] }>('services');
  const ours = services.filter(({ serviceName }) => ['One', 'Two'].includes(serviceName));
  expect(ours.map(({ serviceName }) => serviceName).sort()).toEqual([...model.services].sort());
  const { webhooks } = await read<{ webhooks: { name: string; active: boolean; id: string }[] }>(
    'services/webhooks',
  );
  const shown = Object.fromEntries(webhooks.map(({ name: of, active, id }) => [of, { active, id }]));
  expect(shown).toEqual(model.webhooks);
  const settings = await read<{ notificationAttempts: number }>('services/webhooks/settings');
  expect(settings.notificationAttempts).toBe(model.attempts);
  expect((await read<{ isReadOnly: boolean }>('mode')).isReadOnly).toBe(isReadOnly(model));
  const { status } = await read<{ status: { state: string } }>('system/upgrades');
  expect(status.state === 'in_progress').toBe(model.job !== null);
  if (!model.job) {
    const { updates } = await read<{ updates: unknown[] }>('system/upgrades/installed');
    expect(updates).toHaveLength(1 + model.installed);
  }
  const { users } = await read<{ users: { username: string; role: string }[] }>('security/users');
  expect(users.find(({ username }) => username === 'ann')?.role).toBe(model.ann?.role);
}

it('the service behaves like its model', { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 10, maxLength: 40 }), async (commands) => {
      const server = await startServer({ env: { UPGRADE_STEP_MS: '10' }, receiver: () => 200 });
      try {
        let model = emptyModel(server.runtime.now());
        for (const one of commands) {
          if (one === 'time passes') {
            await server.runtime.advance(pauseMs);
            letTimePass(model, pauseMs);
          } else model = await perform(server, model, one);
          await compare(server, model);
        }
        expect(server.logLines.filter((line) => /"level":[56]0/.test(line))).toEqual([]);
      } finally {
        await server.close();
      }
    }),
    { numRuns: runs },
  );
});
