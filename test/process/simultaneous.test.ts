// Many simultaneous upgrade requests to two servers on one database: one is accepted, all others are refused
// because a job is running.
import { expect, it } from 'vitest';
import type { Message } from '../upgrades/message-codes.ts';
import {
  type Answer,
  type Steward,
  createSeededDatabase,
  signInEverywhere,
  startInProcess,
} from './steward.ts';
import { patch, upgrades } from './upgrade.ts';

const rounds = 5;
const callers = 50;
/** Every request must be answered while the job runs, also on a busy machine: a patch has more than ten steps. */
const stepMs = 1_000;

it(`one of ${callers} simultaneous upgrades is accepted, in each of ${rounds} rounds`, async () => {
  const { url } = await createSeededDatabase();
  const start = () => startInProcess(url, { UPGRADE_STEP_MS: String(stepMs) });
  const stewards = await Promise.all([start(), start()]);
  const token = await signInEverywhere(stewards);
  const stateAt = async (steward: Steward) =>
    ((await steward.get(upgrades, token)).body.status as { state: string }).state;

  const listJobs = async (steward: Steward) =>
    (await steward.get('/admin/system/jobs', token)).body.jobs as { id: string; state: string }[];

  for (let round = 1; round <= rounds; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: callers }, (_, caller) =>
        (stewards[caller % 2] as Steward).post(`${upgrades}/upgrade`, patch, token),
      ),
    );
    const [accepted, ...more] = answers.filter(({ status }) => status === 200);
    expect(more).toEqual([]);
    expect(accepted?.body).toMatchObject({ status: { state: 'in_progress' }, messageCount: 1 });
    const refused = answers.filter((answer) => answer !== accepted);
    for (const { status, body } of refused)
      expect({ status, body }).toMatchObject({ status: 409, body: { error: { code: 409 } } });
    // The replica of the other process may not have the job yet.
    const acceptor = stewards[answers.indexOf(accepted as Answer) % 2] as Steward;
    expect((await listJobs(acceptor)).map(({ state }) => state)).toEqual([
      'in_progress',
      ...Array.from({ length: round - 1 }, () => 'cancelled'),
    ]);

    // Cancel the job, so that the next round can begin.
    const jobId = accepted?.body.jobId as string;
    const canceller = stewards[round % 2] as Steward;
    const cancel = async () => (await canceller.post(`/admin/system/jobs/${jobId}/cancel`, {}, token)).status;
    await expect.poll(cancel).toBe(200);
    for (const steward of stewards)
      await expect.poll(() => stateAt(steward), { timeout: 60_000, interval: 20 }).toBe('cancelled');
  }
  const ids = (await listJobs(stewards[0])).map(({ id }) => id);
  expect(new Set(ids).size).toBe(rounds);
  for (const id of ids) {
    const { body } = await stewards[0].get(`/admin/system/jobs/${id}`, token);
    const { messages } = body.status as { messages: Message[] };
    const announced = messages.map(({ code }) => code).filter((code) => code === 2165 || code === 2166);
    expect(announced).toEqual([2165, 2166]);
  }
  expect(stewards.flatMap((steward) => steward.loggedErrors())).toEqual([]);
});
