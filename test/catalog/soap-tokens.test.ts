// Tokens over SOAP: which operations need one, and which services it shows.
import { describe, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { namespace, startServer } from '../kit/server.ts';
import { call, guardedOperations, namesIn, operations } from './soap-kit.ts';

const server = perFile(startServer);
const guarded = perFile(() => startServer({ env: { REQUIRE_TOKENS: 'true' } }));

describe('tokens', () => {
  it.each(operations)('%s needs no token and ignores one', async (name) => {
    expect((await guarded.soap(call(name))).statusCode).toBe(200);
    expect((await guarded.soap(call(name), {}, '?token=nonsense')).statusCode).toBe(200);
  });

  it.each(guardedOperations)('%s needs a valid token if required, and checks a given one', async (name) => {
    const missing = await guarded.soap(call(name));
    expect(missing.statusCode).toBe(500);
    expect(missing.body).toContain(
      `<detail><Error xmlns="${namespace}"><Code>499</Code><Message>Token required.</Message></Error></detail>`,
    );
    const bad = await guarded.soap(call(name), { authorization: 'Bearer nonsense' });
    expect(bad.body).toContain('<Code>498</Code>');
    expect((await guarded.soap(call(name), {}, '?token=token-of-the-member')).statusCode).toBe(200);
    const twice = await guarded.soap(call(name), {}, '?token=token-of-the-member&token=token-of-the-member');
    expect(twice.body).toContain('<Code>498</Code>');
    expect((await server.soap(call(name), {}, '?token=nonsense')).body).toContain('<Code>498</Code>');
  });

  it('are replaced by the session of a browser only together with the form token of the page', async () => {
    const cookie = `steward_session=${guarded.token('member')}`;
    const page = (await guarded.get('/services', { accept: 'text/html', cookie })).body;
    const formToken = /id="try-session" data-form-token="([^"]+)"/.exec(page)?.[1] ?? '';
    const [name = ''] = guardedOperations;
    const statusOf = async (headers: Record<string, string>, query = '') =>
      (await guarded.soap(call(name), headers, query)).statusCode;
    expect(await statusOf({ cookie }, `?token=${formToken}`)).toBe(200);
    expect((await guarded.soap(call(name), { cookie })).body).toContain('<Code>499</Code>');
    expect(await statusOf({}, `?token=${formToken}`)).toBe(500);
    expect(
      await statusOf({ cookie: `steward_session=${guarded.token('administrator')}` }, `?token=${formToken}`),
    ).toBe(500);
    expect((await guarded.get('/services', { accept: 'text/html' })).body).not.toContain('try-session');
  });

  it.each([
    [undefined, 9],
    ['member', 11],
    ['publisher', 11],
    ['administrator', 12],
  ] as const)('a caller with the role %s sees %d services', async (role, count) => {
    const headers: Record<string, string> = role ? { authorization: `Bearer ${server.token(role)}` } : {};
    expect(namesIn((await server.soap(call('GetServiceDescriptions'), headers)).body)).toHaveLength(count);
  });
});
