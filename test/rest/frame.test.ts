// The frame of all pages: navigation, breadcrumb, the banner of read-only mode, and the theme.
import { describe, expect, it } from 'vitest';
import type { Role } from '../../src/lib/caller.ts';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';

const server = perFile(startServer);

const show = (path: string, role: Role = 'administrator') =>
  server.get(path, { accept: 'text/html', cookie: `steward_session=${server.token(role)}` });

const partOf = (body: string, label: string) =>
  body.split(`aria-label="${label}"`)[1]?.split('</nav>')[0] ?? '';
const textOf = (markup: string) =>
  markup
    .replaceAll(/^[^>]*>|<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

describe('the navigation', () => {
  it('marks the area of the page', async () => {
    for (const [path, current] of [
      ['/admin', 'Home'],
      ['/admin/services/Maps', 'Services'],
      ['/admin/services/webhooks/create', 'Webhooks'],
      ['/admin/services/webhooks/settings', 'Webhook settings'],
      ['/admin/system/upgrades', 'Upgrades'],
      ['/admin/system/upgrades/available', 'Available versions'],
      ['/admin/system/jobs', 'Jobs'],
      ['/admin/system/upgrades/config', 'Maintenance windows'],
      ['/admin/security/users/add', 'Users'],
      ['/admin/uploads', 'Uploads'],
      ['/admin/system/audit', 'Audit trail'],
    ] as const) {
      const navigation = partOf((await show(path)).body, 'Main');
      expect(/aria-current="(?:page|true)"\s*>([\w ]+)/.exec(navigation)?.[1], path).toBe(current);
    }
  });

  it('shows a member what a member may open, also on the page of the SOAP service', async () => {
    expect(textOf(partOf((await show('/admin', 'member')).body, 'Main'))).toBe('Steward Home Services');
    expect(textOf(partOf((await show('/services', 'member')).body, 'Main'))).toBe('Steward Home Services');
  });

  it('is missing without a session, but the product is named', async () => {
    const { body } = await server.get('/admin', { accept: 'text/html' });
    expect(body).not.toContain('aria-label="Main"');
    expect(body).toMatch(/class="brand"[^>]*>.*Steward<\/a>/);
  });
});

describe('an installation', () => {
  it('has its name in bar and title', async () => {
    const named = await startServer({ env: { CONSOLE_NAME: 'Production <EU>' } });
    const { body } = await named.get('/admin', {
      accept: 'text/html',
      cookie: `steward_session=${named.token('member')}`,
    });
    expect(body).toContain('<title>Home · Production &lt;EU&gt;</title>');
    expect(textOf(partOf(body, 'Main'))).toBe('Production &lt;EU&gt; Home Services');
  });
});

describe('the breadcrumb', () => {
  it('names resources, items and operations by their titles', async () => {
    const path = '/admin/services/Maps/Roads.MapServer/edit';
    expect(textOf(partOf((await show(path)).body, 'Breadcrumb'))).toBe(
      'Home Services Maps Roads.MapServer Edit service',
    );
  });

  it('has no link to a page that the caller may not open', async () => {
    const crumbs = partOf((await show('/admin/security/users/add', 'member')).body, 'Breadcrumb');
    expect(crumbs).toContain('<li>Users</li>');
    expect(crumbs).toContain('<a href="/admin">Home</a>');
  });

  it('begins at the entry of the navigation, and leaves out what has no page', async () => {
    const crumbsOf = async (path: string) =>
      textOf(partOf((await show(`/admin/${path}`)).body, 'Breadcrumb'));
    expect(await crumbsOf('system/upgrades/available')).toBe('Home Available versions');
    expect(await crumbsOf('services/webhooks/create')).toBe('Home Webhooks Create webhook');
    expect(await crumbsOf('security/self/changePassword')).toBe('Home Your account Change password');
  });
});

describe('a read of the script of an open page', () => {
  const poll = (path: string, tag = '', part = 'page', cookies = '') =>
    server.get(path, {
      accept: 'text/html',
      cookie: `steward_session=${server.token('administrator')}${cookies}`,
      'steward-poll': part,
      'if-none-match': tag,
    });
  const tagOf = async (...given: Parameters<typeof poll>) => {
    const { statusCode, headers } = await poll(...given);
    expect(statusCode).toBe(200);
    return String(headers.etag);
  };
  const changeMode = (isReadOnly: string) =>
    server.post('/admin/mode/update', { token: server.token('administrator'), isReadOnly });

  it.each(['page', 'frame'])('is answered with 304 until the %s changes', async (part) => {
    const path = '/admin/services';
    const tag = await tagOf(path, '', part);
    await server.runtime.advance(3_600_000);
    const same = await poll(path, tag, part);
    expect([same.statusCode, same.body]).toEqual([304, '']);
    await changeMode('true');
    const changed = await poll(path, tag, part);
    expect(changed.statusCode).toBe(200);
    expect(changed.body).toContain('The system is read-only.');
    await changeMode('false');
    expect(await tagOf(path, '', part)).toBe(tag);
    expect((await server.get(path, { accept: 'text/html', 'if-none-match': tag })).statusCode).toBe(401);
  });

  it('of the frame has the navigation, but not what the page shows', async () => {
    for (const path of ['/admin/services', '/admin/services/createService']) {
      const { body } = await poll(path, '', 'frame');
      expect(partOf(body, 'Main')).toBe(partOf((await show(path)).body, 'Main'));
      expect(body).not.toContain('serviceName');
    }
    expect((await poll('/admin/services/Nothing.MapServer', '', 'frame')).statusCode).toBe(404);
    const { statusCode } = await server.get('/admin', { accept: 'text/html', 'steward-poll': 'frame' });
    expect(statusCode).toBe(401);
  });

  it('leaves a notice to the page that a redirect leads to', async () => {
    const notice = `steward_notice=${Buffer.from('{"text":"It was done."}').toString('base64url')}`;
    const polled = await poll('/admin', '', 'page', `; ${notice}`);
    expect([polled.body.includes('It was done.'), polled.headers['set-cookie']]).toEqual([false, undefined]);
    const cookie = `steward_session=${server.token('administrator')}; ${notice}`;
    const opened = await server.get('/admin', { accept: 'text/html', cookie });
    expect(opened.body).toContain('It was done.');
    expect(opened.headers['set-cookie']).toMatch(/^steward_notice=; Max-Age=0/);
  });
});

describe('a time', () => {
  it('in a notice or an error is an element, which the script shows in the zone of the reader', async () => {
    const text = '2026-13-01T00:00:00.000Z becomes <b> at 2026-11-21T01:00:00.000Z.';
    const shown =
      '2026-13-01T00:00:00.000Z becomes &lt;b&gt; at <time datetime="2026-11-21T01:00:00.000Z">2026-11-21 01:00:00 UTC</time>.';
    const notice = `steward_notice=${Buffer.from(JSON.stringify({ text })).toString('base64url')}`;
    const cookie = `steward_session=${server.token('member')}; ${notice}`;
    expect((await server.get('/admin', { accept: 'text/html', cookie })).body).toContain(shown);
  });
});

describe('the theme', () => {
  const choose = (fields: Record<string, string>) => server.post('/admin/assets/theme', fields);
  const schemeOf = (body: string) => /<meta name="color-scheme" content="([^"]*)"/.exec(body)?.[1];

  it('is the one of the system, until a form of the account menu chooses another', async () => {
    const { body } = await show('/admin/services?q=map');
    expect(schemeOf(body)).toBe('light dark');
    expect(body).toContain('value="system" aria-pressed="true"');
    expect(body).toMatch(
      /action="\/admin\/assets\/theme"[^>]*>\s*<input[^>]* value="\/admin\/services\?q=map"/,
    );
    const chosen = await choose({ theme: 'dark', next: '/admin/services?q=map' });
    expect([chosen.statusCode, chosen.headers.location]).toEqual([303, '/admin/services?q=map']);
    expect(chosen.headers['set-cookie']).toBe(
      'steward_theme=dark; Max-Age=31536000; Path=/; HttpOnly; SameSite=Strict',
    );
    expect((await choose({ theme: 'system' })).headers['set-cookie']).toMatch(
      /^steward_theme=system; Max-Age=0;/,
    );
  });

  it.each(['/admin', '/admin/nothing', '/services', '/tokens/generateToken?f=html'])(
    'is on every page, also at %s',
    async (path) => {
      for (const [cookie, scheme] of [
        ['steward_theme=dark', 'dark'],
        ['a=b; steward_theme=light', 'light'],
        ['steward_theme="><script>', 'light dark'],
      ] as const)
        expect(schemeOf((await server.get(path, { accept: 'text/html', cookie })).body)).toBe(scheme);
    },
  );

  it('is one of three, and its form leads nowhere else', async () => {
    expect((await choose({ theme: 'pink' })).statusCode).toBe(400);
    expect((await server.post('/admin/assets/theme', {})).statusCode).toBe(400);
    const away = await choose({ theme: 'dark', next: 'https://evil.example/' });
    expect(away.headers.location).toBe('/admin');
  });
});

it('a form leads back without a change', async () => {
  const add = '/admin/security/users/add';
  const backOf = async (path: string) => / <a href="([^"]*)">Back<\/a>/.exec((await show(path)).body)?.[1];
  expect(await backOf(add)).toBe('/admin/security/users');
  expect(await backOf(`${add}?next=/admin/mode`)).toBe('/admin/mode');
  expect(await backOf(`${add}?next=//evil.example`)).toBe('/admin/security/users');
  expect(await backOf(`${add}?next=/admin/system/jobs/%7BjobId%7D`)).toBe('/admin/security/users');
});
