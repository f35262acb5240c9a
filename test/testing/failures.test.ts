// Failure rules: what they match, how they respond, and that every error of the contract can be rehearsed.
import { beforeEach, describe, expect, it } from 'vitest';
import { toErrorResponse } from '../../src/http/errors.ts';
import { type ErrorKind, ServiceError, usualMessages } from '../../src/lib/errors.ts';
import type { NewFailureRule } from '../../src/testing/control-client.ts';
import { namespace } from '../kit/server.ts';
import { createWebhook, startControl, startReceiver } from './kit.ts';

const server = await startControl();
const receiver = await startReceiver();
const { control, act, get, send, post, soap, raw } = server;
beforeEach(async () => {
  await control.removeFailures();
  receiver.arrivals.length = 0;
});

const getFolders = `<GetFolders xmlns="${namespace}"/>`;
const json = { method: 'POST', headers: { 'content-type': 'application/json' } };

describe('a rule', () => {
  it('answers before all checks, as often as it says, and counts its hits', async () => {
    const rule = await control.addFailure({
      match: { route: '/admin/services/webhooks/{id}', method: 'get' },
      respond: { status: 502 },
      times: 1,
    });
    expect(rule).toMatchObject({ match: { method: 'GET' }, times: 1, hits: 0 });
    const anonymous = { headers: { authorization: 'Bearer unknown' } };
    expect((await send('/admin/services/webhooks/none', { ...anonymous, method: 'POST' })).status).toBe(401);
    const answer = await send('/admin/services/webhooks/none', anonymous);
    expect([answer.status, await answer.json()]).toEqual([
      502,
      {
        status: 'error',
        error: { code: 502, message: 'A failure rule answered this request.', details: [] },
      },
    ]);
    expect((await send('/admin/services/webhooks/none', anonymous)).status).toBe(401);
    expect(await control.failures()).toEqual([{ ...rule, hits: 1 }]);
  });

  it('yields to the rule before it, and is removed by its id', async () => {
    const first = await control.addFailure({ match: { route: '/admin/mode' }, respond: { status: 500 } });
    await control.addFailure({ match: {}, respond: { status: 429 } });
    expect((await send('/admin/mode')).status).toBe(500);
    const limited = await send('/unknown');
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '5']);
    expect(limited.headers.get('x-content-type-options')).toBe('nosniff');
    await control.removeFailures(first.id);
    expect((await send('/admin/mode')).status).toBe(429);
    await expect(control.removeFailures(first.id)).rejects.toThrow('404 There is no rule with the id');
  });

  it('accepts every path of the OpenAPI document, and distinguishes folders from services', async () => {
    const document = (await (await send('/admin/openapi.json')).json()) as { paths: object };
    const routes = Object.keys(document.paths);
    expect(routes.length).toBeGreaterThan(100);
    for (const route of routes) await control.addFailure({ match: { route }, respond: { status: 502 } });
    await control.removeFailures();
    const route = '/admin/services/{serviceName}.{type}';
    await control.addFailure({ match: { route }, respond: { status: 502 } });
    expect((await send('/admin/services/World.MapServer')).status).toBe(502);
    expect((await send('/admin/services/Maps')).status).toBe(200);
  });

  it('never answers for /control and the probes', async () => {
    await control.addFailure({ match: {}, respond: { disconnect: true } });
    for (const path of ['/health', '/ready', '/metrics', '/control/clock'])
      expect((await send(path)).status, path).toBe(200);
  });

  it('disconnects and delays', async () => {
    await control.addFailure({ match: { route: '/admin/mode' }, respond: { disconnect: true }, times: 1 });
    await expect(send('/admin/mode')).rejects.toThrow();
    await control.removeFailures();
    const route = '/admin/mode';
    await control.addFailure({ match: { route }, respond: { delayMs: 50 }, times: 1 });
    expect((await send(route)).status).toBe(200);
    await control.addFailure({ match: { route }, respond: { delayMs: 60_000 } });
    const client = new AbortController();
    let isAnswered = false;
    const delayed = send(route, { signal: client.signal }).then(() => (isAnswered = true));
    delayed.catch(() => undefined);
    await expect.poll(async () => (await control.failures()).map(({ hits }) => hits)).toContain(1);
    expect((await send('/admin/services')).status).toBe(200);
    expect(isAnswered).toBe(false);
    client.abort();
    await expect(delayed).rejects.toThrow();
  });

  it('answers as networks do: a page of a proxy, a redirect, without a body, cut off, dripping', async () => {
    const route = '/rest/info';
    const answerTo = async (respond: NewFailureRule['respond']) => {
      await control.removeFailures();
      await control.addFailure({ match: { route }, respond });
      return send(route, { redirect: 'manual' });
    };
    const type = { 'content-type': 'text/html; charset=utf-8' };
    const page = await answerTo({ status: 502, body: '<h1>Bad Gateway</h1>', headers: { via: '1.1 proxy' } });
    expect([page.status, Object.fromEntries(page.headers), await page.text()]).toMatchObject([
      502,
      { ...type, 'content-length': '20', via: '1.1 proxy' },
      '<h1>Bad Gateway</h1>',
    ]);
    const moved = await answerTo({ status: 302, headers: { Location: '/elsewhere' } });
    expect([moved.status, moved.headers.get('location')]).toEqual([302, '/elsewhere']);
    const later = await answerTo({ status: 503, headers: { 'retry-after': '7' } });
    expect(later.headers.get('retry-after')).toBe('7');
    const empty = await answerTo({ status: 204 });
    expect([empty.status, empty.headers.get('content-length'), await empty.text()]).toEqual([204, null, '']);
    // The answer of the server itself, cut off or byte by byte.
    const cut = await answerTo({ truncateAt: 10 });
    expect([cut.status, Number(cut.headers.get('content-length'))]).toEqual([200, expect.any(Number)]);
    await expect(cut.text()).rejects.toThrow('terminated');
    const [entry] = (await control.requests({ route })).requests;
    expect(entry).toMatchObject({
      status: 200,
      response: { body: expect.stringMatching(/^.{10}$/) as string },
    });
    const dripping = await answerTo({ status: 200, body: 'drops', dripMs: 1 });
    expect([await dripping.text(), dripping.headers.get('content-length')]).toEqual(['drops', '5']);
    const both = await answerTo({ error: 'unavailable', truncateAt: 3, dripMs: 1 });
    expect(both.status).toBe(503);
    await expect(both.text()).rejects.toThrow('terminated');
    expect(await control.unusedFailures()).toEqual([]);
    await control.addFailure({ match: { route: '/admin' }, respond: { status: 500 } });
    expect(await control.unusedFailures()).toMatchObject([{ match: { route: '/admin' }, hits: 0 }]);
    expect(await (await raw('')).text()).toContain('not used');
  });

  it('answers one SOAP operation with a fault', async () => {
    const match = { soapOperation: 'GetFolders' };
    await control.addFailure({ match, respond: { fault: 'Server' }, times: 1 });
    const busy = { fault: 'Client', status: 503, headers: { 'retry-after': '5' } } as const;
    await control.addFailure({ match, respond: busy, times: 1 });
    expect((await soap(`<GetMessageVersion xmlns="${namespace}"/>`)).status).toBe(200);
    const first = await soap(getFolders);
    expect([first.status, await first.text()]).toEqual([500, expect.stringContaining('soap:Server')]);
    const second = await soap(getFolders);
    expect([second.status, second.headers.get('retry-after'), await second.text()]).toEqual([
      503,
      '5',
      expect.stringContaining('soap:Client'),
    ]);
    expect((await soap(getFolders)).status).toBe(200);
  });

  it('of a SOAP operation takes its turn among the others', async () => {
    await control.addFailure({ match: { soapOperation: 'GetFolders' }, respond: { fault: 'Server' } });
    await control.addFailure({ match: {}, respond: { status: 429 } });
    await control.addFailure({ match: { soapOperation: 'GetMessageVersion' }, respond: { status: 502 } });
    expect((await soap(getFolders)).status).toBe(500);
    expect((await soap(`<GetMessageVersion xmlns="${namespace}"/>`)).status).toBe(429);
    expect((await control.failures()).map(({ hits }) => hits)).toEqual([1, 1, 0]);
  });

  it('delays until the server is reset', async () => {
    await control.addFailure({ match: { route: '/admin/mode' }, respond: { delayMs: 600_000 } });
    const delayed = send('/admin/mode');
    await expect.poll(async () => (await control.failures())[0]?.hits).toBe(1);
    await control.reset();
    expect((await delayed).status).toBe(503);
  });

  it('answers for a receiver', async () => {
    await control.reset();
    await control.setClock({ frozen: true });
    const origin = receiver.url;
    const busy = { status: 503, body: 'busy', headers: { 'Retry-After': '1' } };
    for (const respond of [busy, { disconnect: true }, { error: 'forbidden' }] as const)
      await control.addFailure({ match: { receiver: origin }, respond, times: 1 });
    await act('/admin/services/webhooks/settings', {
      notificationAttempts: '5',
      notificationElapsedTimeInSeconds: '5',
    });
    const id = await createWebhook(server, `${origin}/in`);
    await act('/admin/services/webhooks/publish', { changeType: 'Tested' });
    await control.advanceClock(60_000);
    const { deliveries } = await get<{
      deliveries: { attempts: { status: number | null; error: string }[] }[];
    }>(`/admin/services/webhooks/${id}/deliveries`);
    expect(deliveries[0]?.attempts.map(({ status, error }) => status ?? error)).toEqual([
      503,
      'The connection was closed before the answer was complete.',
      403,
      200,
    ]);
    expect(receiver.arrivals).toEqual(['/in']);
  });

  it('names the jobs that have its step, unless all have it, and the methods of its route', async () => {
    const noteOf = async (match: NewFailureRule['match']) =>
      (await control.addFailure({ match, respond: { error: 'conflict' } })).note;
    expect(await noteOf({ step: 'database-engine' })).toBe('Only a release has the step database-engine.');
    expect(await noteOf({ step: 'verify' })).toBe('Only a release or a patch has the step verify.');
    expect(await noteOf({ step: 'revert' })).toBe('Only a patch or a rollback has the step revert.');
    expect(await noteOf({ step: 'launch' })).toBeUndefined();
    expect(await noteOf({ container: 'PORTAL_API' })).toBeUndefined();
    expect(await noteOf({ route: '/admin/mode', method: 'HEAD' })).toBeUndefined();
    expect(await noteOf({ route: '/admin/mode', method: 'PUT' })).toBe(
      'No request matches: the methods of /admin/mode are GET, HEAD, POST.',
    );
    const [rule] = await control.failures();
    expect(rule?.note).toBe('Only a release has the step database-engine.');
  });

  it('knows the containers of an imported manifest', async () => {
    await control.reset();
    const rule = { match: { container: 'ADDED_CONTAINER' }, respond: { status: 500 } };
    await expect(control.addFailure(rule)).rejects.toThrow('match.container: must be one of ');
    const manifest = await get<{ containers: { name: string }[] }[]>('/admin/system/upgrades/available');
    manifest[0]?.containers.push({ ...manifest[0].containers[0], name: 'ADDED_CONTAINER' });
    const manifestFile = JSON.stringify(manifest);
    await act('/admin/system/upgrades/importManifest', { manifestFile });
    expect(await control.addFailure(rule)).toMatchObject(rule);
    await control.reset();
  });

  it('lets a container and a step fail', async () => {
    await control.reset();
    await control.setClock({ frozen: true });
    const upgrade = async () => {
      await control.advanceClock(0);
      const { jobId } = await act<{ jobId: string }>('/admin/system/upgrades/upgrade', {
        versionManifest: '{"id":"pat_28042022_1260"}',
      });
      await control.advanceClock(600_000);
      return JSON.stringify(await get(`/admin/system/jobs/${jobId}`));
    };
    const container = { container: 'portal_api' };
    await control.addFailure({ match: container, respond: { error: 'conflict' }, times: 1 });
    expect(await upgrade()).toContain(
      'the step update of PORTAL_API was made to fail by test control (conflict)',
    );
    const step = { step: 'verify', container: 'GATEWAY_PROXY' };
    await control.addFailure({ match: step, respond: { error: 'unavailable' }, times: 1 });
    expect(await upgrade()).toContain(
      'the step verify of GATEWAY_PROXY was made to fail by test control (unavailable)',
    );
    await control.addFailure({ match: { step: 'final-check' }, respond: { delayMs: 100_000 } });
    expect(await upgrade()).toContain('"state":"success"');
  });
});

/** One documented request for each error kind that needs no rule. */
const documented: Partial<Record<ErrorKind, () => Promise<Response>>> = {
  invalid: () => post('/admin/services/createFolder', { folderName: '' }),
  'wrong-credentials': () => post('/tokens/generateToken', { username: 'admin', password: 'wrong password' }),
  'token-missing': () => send('/admin/mode', { headers: { authorization: 'none' } }),
  'token-invalid': () => send('/admin/mode', { headers: { authorization: 'Bearer unknown' } }),
  'not-found': () => send('/admin/none'),
  'method-not-allowed': () => send('/admin/mode', { method: 'DELETE' }),
  'unsupported-media-type': () => send('/admin/mode/update', { ...json, body: '{}' }),
};

it.each(Object.keys(usualMessages) as ErrorKind[])(
  'the error kind %s is rehearsed by one rule over REST and SOAP, and answered to a documented request in the same way',
  async (kind) => {
    const { status, body } = toErrorResponse(new ServiceError(kind, ''));
    const { code } = body.error;
    await control.addFailure({ match: { route: '/admin/mode' }, respond: { error: kind }, times: 1 });
    await control.addFailure({ match: { route: '/services' }, respond: { error: kind }, times: 1 });
    const answer = await send('/admin/mode', { headers: { accept: 'application/json' } });
    if (status === 503 || status === 429) expect(answer.headers.get('retry-after')).toMatch(/^[0-9]+$/);
    if (status === 405) expect(answer.headers.get('allow')).toBe('GET, HEAD, POST');
    for (const each of [answer, await documented[kind]?.()])
      if (each) expect([each.status, await each.json()]).toMatchObject([status, { error: { code } }]);
    expect(await (await soap(getFolders)).text()).toContain(`<Code>${code}</Code>`);
  },
);

it.each([
  [{ respond: { status: 500 } }, 'match: must be a JSON object.'],
  [
    { match: {}, respond: {} },
    'respond: must name at least one of error, status, body, headers, fault, delayMs, disconnect, truncateAt, dripMs.',
  ],
  [{ match: { path: '/x' }, respond: { status: 500 } }, 'match.path: is not known here.'],
  [
    { match: { route: '/admin/none' }, respond: { status: 500 } },
    'match.route: must be a path template of openapi.json',
  ],
  [
    { match: { container: 'A', method: 'GET' }, respond: { status: 500 } },
    'match: must name parts of a request',
  ],
  [{ match: { step: 'none' }, respond: { error: 'invalid' } }, 'match.step: must be one of '],
  [
    { match: { soapOperation: 'GetFolder' }, respond: { fault: 'Server' } },
    'match.soapOperation: must be one of GetMessageVersion, ',
  ],
  [
    { match: { container: 'PORTAL_APP' }, respond: { error: 'invalid' } },
    /match\.container: must be one of .*\bPORTAL_API\b/,
  ],
  [
    { match: { container: 'PORTAL_API', step: 'launch' }, respond: { error: 'invalid' } },
    'match.step: must be one of update, verify, revert with a container.',
  ],
  [
    { match: { step: 'before' }, respond: { error: 'invalid' } },
    'match.step: is in no plan of this server: see SIMULATED_STEP_TEMPLATES.',
  ],
  [{ match: { receiver: 'hooks.example' }, respond: { status: 500 } }, 'match.receiver: must be an origin'],
  [{ match: {}, respond: { fault: 'Server' } }, 'respond.fault: needs match.soapOperation'],
  [{ match: {}, respond: { status: 99 } }, 'respond.status: must be an integer from 200 to 599.'],
  [{ match: {}, respond: { error: 'gone' } }, 'respond.error: must be one of invalid, wrong-credentials'],
  [
    { match: {}, respond: { status: 500, error: 'invalid' } },
    'respond: must name one of disconnect, error, or status, fault, body and headers.',
  ],
  [{ match: {}, respond: { status: 301 } }, 'respond: must have headers with a location for the status 301.'],
  [
    { match: {}, respond: { headers: { 'Content-Length': '3' } } },
    'respond: must not have the header content-length, which the server sends.',
  ],
  [
    { match: { route: '/services' }, respond: { fault: 'Server', body: 'x' } },
    'respond: must not name both fault and body.',
  ],
  [
    { match: {}, respond: { headers: { a: 'b\r\nc: d' } } },
    'respond.headers.a: must be the value of a header.',
  ],
  [
    { match: { receiver: 'https://a.example' }, respond: { status: 500, dripMs: 5 } },
    'respond: must not name truncateAt or dripMs for a step or a receiver.',
  ],
  [{ match: {}, respond: { status: 500 }, times: 0 }, 'times: must be an integer from 1 to 1000000000.'],
])('refuses %j', async (rule, problem) => {
  const answer = await raw('/failures', { ...json, body: JSON.stringify(rule) });
  const { error } = (await answer.json()) as { error: { details: string[] } };
  expect(answer.status).toBe(400);
  expect(error.details.join('\n')).toMatch(problem);
});
