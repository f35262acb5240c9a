// A round of requests on a controlled server: reset, then a full upgrade with a webhook, and the answers byte by byte.
import { password } from '../kit/server.ts';
import { type Controlled } from './kit.ts';

/** Resets do not move the clock back, so every round is at a time after all of them. */
const at = Date.now() + 3_600_000;

/** Returns the status, headers and body of every answer. */
export async function runRound({ control, send, post }: Controlled): Promise<string[]> {
  await control.reset();
  await control.setClock({ frozen: true, now: at });
  await control.addFailure({ match: { receiver: 'https://hooks.example' }, respond: { status: 204 } });
  const answers: string[] = [];
  const keep = async (pending: Promise<Response>): Promise<string> => {
    const response = await pending;
    const headers = [...response.headers].filter(([name]) => name !== 'date');
    const body = await response.text();
    answers.push(JSON.stringify([response.status, headers, body]));
    return body;
  };
  await keep(post('/tokens/generateToken', { username: 'admin', password }));
  const hook = { name: 'hook', hookUrl: 'https://hooks.example/in', changeTypes: '*' };
  const created = await keep(post('/admin/services/webhooks/create', hook));
  const { webhook } = JSON.parse(created) as { webhook: { id: string } };
  await keep(post('/admin/services/createService', { serviceName: 'Tides', type: 'MapServer' }));
  await keep(
    post('/admin/system/upgrades/upgrade', { versionManifest: '{"id":"rel_11"}', isLicensed: 'true' }),
  );
  await keep(post('/admin/system/upgrades/upgrade', { versionManifest: '{"id":"pat_28042022_1260"}' }));
  await control.advanceClock(600_000);
  await keep(send('/admin/system/upgrades'));
  await keep(send('/admin/system/jobs'));
  await keep(send(`/admin/services/webhooks/${webhook.id}/deliveries`));
  await keep(send('/admin/security/users'));
  await keep(send('/admin/system/audit'));
  await keep(send('/services?wsdl'));
  return answers;
}
