// A redelivery by filter runs while a process and the database are killed: every matched delivery is repeated
// exactly once, and arrives.
import { expect, it } from 'vitest';
import { allDeliveries } from '../kit/deliveries-sql.ts';
import { changeSettings, register, startReceiver, webhooksPath } from './receiver.ts';
import { connect, signInEverywhere, startSeededPostgres, startSteward } from './steward.ts';

const matched = 600;
/** Few, so that the redelivery pauses again and again. */
const env = { WEBHOOK_MAX_PENDING: '50' };
/** The receiver answers for so many events until the kills are over, so that the redelivery is not over before. */
const beforeKills = 300;
/** The lease of the killed process must end before its deliveries can be attempted again. */
const settledWithinMs = 60_000;

it('each matched delivery is repeated once', async () => {
  const postgres = await startSeededPostgres();
  const [victim, survivor] = await Promise.all([
    startSteward(postgres.url, env),
    startSteward(postgres.url, env),
  ]);
  const token = await signInEverywhere([victim, survivor]);
  // The database is killed during attempts, so some are repeated.
  await changeSettings(victim, token, { numberOfFailures: '10000', notificationElapsedTimeInSeconds: '0' });
  const receiver = await startReceiver();
  receiver.mostAnswered = beforeKills;
  const id = await register([victim, survivor], token, receiver, 'Tested');
  const before = await connect(postgres.url);
  await before(
    `with content as (
       insert into events (number, id, type, at, data)
       select nextval('delivery_numbers'), 'event-' || n, 'Tested', n, '{}' from generate_series(1, $2::int) n returning *)
     insert into finished (number, created_at, event_number, id, webhook_id, event_type, state, is_ping, is_late, ended_at)
     select nextval('delivery_numbers'), at, number, 'missed-' || at, $1, type, 'missed', false, false, at from content`,
    [id, matched],
  );
  const requested = await victim.post(`${webhooksPath}/${id}/redeliver`, {}, token);
  expect(requested.body).toEqual({ status: 'success', matched, skipped: 0 });

  const created = async () => {
    const page = await survivor.get(`${webhooksPath}/deliveries?state=pending,delivered,failed`, token);
    return page.body.total as number;
  };
  await expect.poll(created, { timeout: 60_000, interval: 10 }).toBeGreaterThan(50);
  await victim.kill();
  await expect.poll(created, { timeout: 60_000, interval: 10 }).toBeGreaterThan(200);
  await postgres.kill();
  await postgres.start();
  await expect.poll(survivor.readiness).toBe(200);
  expect(await created()).toBeLessThan(matched);
  receiver.mostAnswered = matched;

  const delivered = async () =>
    (await survivor.get(`${webhooksPath}/deliveries?state=delivered`, token)).body.total;
  await expect.poll(delivered, { timeout: settledWithinMs, interval: 200 }).toBe(matched);
  const after = await connect(postgres.url);
  const [links] = await after<{ originals: number; repeated: number; all: number }>(
    `select count(*) filter (where n.id is not null)::int as originals, count(distinct d.redelivery_of)::int as repeated,
       count(d.redelivery_of)::int as all
     from ${allDeliveries} d left join ${allDeliveries} n on n.id = d.redelivered_as and n.redelivery_of = d.id`,
  );
  expect(links).toEqual({ originals: matched, repeated: matched, all: matched });
  expect(receiver.arrivals.size).toBe(matched);
  expect(receiver.badSignatures).toEqual([]);
  const left = () => after(`select from state where kind = 'redeliveries' and value is not null`);
  await expect.poll(left).toEqual([]);
  expect(survivor.loggedErrors()).toEqual([]);
});
