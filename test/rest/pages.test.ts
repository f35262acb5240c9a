// Pages in a browser: sessions, forms that keep their input, redirects, and commands to copy.
import { beforeAll, describe, expect, it } from 'vitest';
import { audiences } from '../../src/catalog/catalog.ts';
import { readNotice, writeNotice } from '../../src/console/notice.ts';
import { perFile } from '../kit/cleanup.ts';
import { password, startServer } from '../kit/server.ts';
import { formOf } from '../upgrades/page-kit.ts';

const server = perFile(startServer);
let token: string;
let cookie: string;
let formToken: string;
beforeAll(async () => {
  token = server.token('administrator');
  cookie = `steward_session=${token}`;
  const { body } = await server.get('/admin/services/createFolder', { cookie, accept: 'text/html' });
  formToken = /name="token" value="([^"]+)"/.exec(body)?.[1] ?? '';
});

const page = (path: string, headers: Record<string, string> = { cookie }) =>
  server.get(path, { accept: 'text/html', ...headers });
const submit = (path: string, fields: Record<string, string>) =>
  server.post(path, { token: formToken, f: 'html', ...fields }, { cookie });

it('the sign-in form shows an alert for an invalid token, but not without a session or after its end', async () => {
  const first = await page('/admin', {});
  expect(first.body).toContain('<h1>Sign in</h1>');
  expect(first.body).not.toContain('role="alert"');
  const ended = await page('/admin', { cookie: 'steward_session=ended' });
  expect(ended.body).toContain('Your session has ended. Sign in to go on.');
  expect(ended.body).not.toContain('role="alert"');
  const bad = await page('/admin?f=html&token=invalid', {});
  expect(bad.body).toMatch(/role="alert"[^>]*>\s*<p><strong>Your session has ended\./);
  expect(bad.body).toContain('<title>Error: Sign in');
  expect(bad.body).not.toContain('Invalid token.');
});

it('a page never contains the token of its address', async () => {
  for (const path of ['/admin', '/admin/system/upgrades', '/admin/services', '/admin/services/webhooks']) {
    const { statusCode, body } = await page(`${path}?f=html&token=${token}&version=rel_14072022_2632`, {});
    expect(statusCode).toBe(200);
    expect(body).not.toContain(token);
  }
});

describe('a submitted form', () => {
  it('redirects to next, and the page there shows the completed operation', async () => {
    const next = '/admin/services?q=a';
    const { statusCode, headers } = await submit('/admin/services/createFolder', {
      folderName: 'Next',
      next,
    });
    expect([statusCode, headers.location]).toEqual([303, next]);
    expect(headers['cache-control']).toBe('no-store');
    const [notice = ''] = String(headers['set-cookie']).split(';');
    expect(headers['set-cookie']).toMatch(
      /^steward_notice=[\w-]+; Max-Age=60; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const shown = await page(next, { cookie: `${cookie}; ${notice}` });
    expect(shown.body).toMatch(
      /role="status" class="result">\s*The folder Next was created\. <a href="\/admin\/services\/Next">/,
    );
    // The page shows it once: a reload has no cookie any more.
    expect(shown.headers['set-cookie']).toMatch(/^steward_notice=; Max-Age=0;/);
    expect((await page(`${next}&done=deleteAll`)).body).not.toContain('class="result"');
  });

  it('that is refused keeps next', async () => {
    const refused = await submit('/admin/services/createFolder', { folderName: 'a.b', next: '/admin?q="' });
    expect(refused.body).toContain('<input type="hidden" name="next" value="/admin?q=&quot;" />');
  });

  it.each([
    '//evil.example',
    '/\\evil.example',
    '/.//evil.example',
    '/a/..//evil.example',
    '/%2e//evil.example',
    '/\t/evil.example',
    'https://evil.example',
  ])('does not redirect to %s, and shows no notice that leads there', async (next) => {
    const notice = JSON.stringify({ text: 'Forged.', link: { name: 'there', href: next } });
    const value = Buffer.from(notice).toString('base64url');
    const shown = await page('/admin/services', { cookie: `${cookie}; steward_notice=${value}` });
    expect(shown.body).toContain('Forged.');
    expect(shown.body).not.toMatch(/Forged\.\s*<a/);
    const { statusCode, headers } = await submit('/admin/mode/update', { isReadOnly: 'false', next });
    expect([statusCode, headers.location]).toEqual([303, '/admin/mode']);
  });

  it('redirects with the id of the new item in the address', async () => {
    const boundary = 'x';
    const part = (name: string, value: string, file = '') =>
      `--x\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
    const next = '/admin/system/upgrades/plan?upgradeSettings=%7BitemID%7D';
    const { headers } = await server.http.inject({
      method: 'POST',
      url: '/admin/uploads/upload',
      headers: { cookie, 'content-type': `multipart/form-data; boundary=${boundary}` },
      payload:
        part('token', formToken) +
        part('f', 'html') +
        part('next', next) +
        part('itemFile', '{}', '; filename="a.json"') +
        '--x--\r\n',
    });
    expect(headers.location).toMatch(/^\/admin\/system\/upgrades\/plan\?upgradeSettings=id-\d+$/);
  });

  it('without next leads to what it was about, or to the page of its resource', async () => {
    const created = await submit('/admin/services/createFolder', { folderName: 'Result' });
    expect(created.headers.location).toBe('/admin/services/Result');
    const { headers } = await submit('/admin/mode/update', { isReadOnly: 'false' });
    expect(headers.location).toBe('/admin/mode');
  });
});

describe('a form that is sent after the end of its session', () => {
  const gone = { cookie: 'steward_session=ended' };
  const path = '/admin/services/createFolder';
  const nextIn = (body: string) =>
    (/name="next" value="([^"]*)"/.exec(body)?.[1] ?? '').replaceAll('&amp;', '&');
  const send = (to: string, fields: Record<string, string>, headers: Record<string, string> = gone) =>
    server.post(to, { f: 'html', token: 'form_of-an-ended-session', ...fields }, headers);

  it('is filled in again after signing in, and is not executed before it is sent again', async () => {
    const fields = { folderName: 'Über & Co', description: 'One\nTwo', next: '/admin/mode' };
    const { statusCode, body } = await send(path, fields);
    expect(statusCode).toBe(401);
    expect(body).toContain(
      'Your session has ended. Sign in to go on; your input is kept, except passwords, addresses and files.',
    );
    expect(body).not.toContain('role="alert"');
    const signIn = { f: 'html', username: 'administrator', password, next: nextIn(body) };
    const { headers } = await server.post('/tokens/generateToken', signIn);
    const [fresh = ''] = String(headers['set-cookie']).split(';');
    const form = await page(String(headers.location), { cookie: fresh });
    expect(form.body).toMatch(/name="folderName"[^>]* value="Über &amp; Co"/);
    expect(form.body).toContain('>One\nTwo</textarea>');
    expect(form.body).toContain('name="next" value="/admin/mode"');
    expect(
      (await server.get(`/admin/services/${encodeURIComponent('Über & Co')}`, { cookie })).statusCode,
    ).toBe(404);
  });

  it('keeps its input over a wrong password', async () => {
    const next = nextIn((await send(path, { folderName: 'Kept' })).body);
    const wrong = { f: 'html', username: 'administrator', password: 'wrong', next };
    expect(nextIn((await server.post('/tokens/generateToken', wrong)).body)).toBe(next);
  });

  it('loses passwords and hidden values, and says so', async () => {
    const user = await send('/admin/security/users/add', {
      username: 'kept-name',
      password: 'Secret-word-1',
    });
    expect(user.body).toContain('your input is kept, except passwords, addresses and files.');
    expect(nextIn(user.body)).toContain('username=kept-name');
    expect(user.body).not.toContain('Secret-word-1');
    const hook = await send('/admin/services/webhooks/create', {
      name: 'x',
      headers: '{"X-Key":"Secret-word-1"}',
    });
    expect(nextIn(hook.body)).toContain('X-Key');
    expect(hook.body).not.toContain('Secret-word-1');
  });

  it('is lost if it is too long for an address, and the page says so', async () => {
    const { body } = await send(path, { folderName: 'Long', description: 'ü'.repeat(1000) });
    expect(body).toContain('Your input is not kept: go back to copy it before you sign in.');
    expect(nextIn(body)).toBe(path);
  });

  it('without input is shown again too', async () => {
    const { body } = await send('/admin/services/Maps/Roads.MapServer/delete', {
      next: '/admin/services/Maps',
    });
    expect(nextIn(body)).toBe('/admin/services/Maps/Roads.MapServer/delete?next=%2Fadmin%2Fservices%2FMaps');
  });

  it('keeps its input on the page of a resource', async () => {
    const { body } = await send('/admin/services/webhooks/settings', { notificationAttempts: '7' });
    const { body: form } = await page(nextIn(body));
    expect(form).toMatch(/name="notificationAttempts"[^>]* value="7"/);
  });

  it('is shown again at once if the browser has a new session', async () => {
    const { statusCode, headers } = await send(path, { folderName: 'Again' }, { cookie });
    expect([statusCode, headers.location]).toEqual([303, `${path}?folderName=Again`]);
    const [notice = ''] = String(headers['set-cookie']).split(';');
    const { body } = await page(String(headers.location), { cookie: `${cookie}; ${notice}` });
    expect(body).toContain('Nothing was changed: check the input, and send it again.');
    expect(body).toMatch(/name="folderName"[^>]* value="Again"/);
  });
});

describe('a form of something that was changed meanwhile', () => {
  const path = '/admin/services/Maps/Roads.MapServer';
  const versionIn = (body: string) => /name="version" value="(\d+)"/.exec(body)?.[1] ?? '';
  const description = async () =>
    (await server.get(path, { cookie })).json<{ description: string }>().description;

  it('is refused with the present values, and may be sent again', async () => {
    const version = versionIn((await page(`${path}/edit`)).body);
    expect(version).not.toBe('');
    await server.runtime.advance(1000);
    // Without a version the API compares nothing.
    expect(
      (await server.post(`${path}/edit`, { token, description: 'Theirs', access: 'organization' }))
        .statusCode,
    ).toBe(200);

    const api = await server.post(`${path}/edit`, { token, description: 'Mine', version });
    expect([api.statusCode, api.json()]).toEqual([
      409,
      {
        status: 'error',
        error: {
          code: 409,
          message:
            'The service was changed meanwhile. Nothing was saved: check the values, and send them again.',
          details: [],
        },
      },
    ]);
    const refused = await submit(`${path}/edit`, { description: 'Mine', version });
    expect(refused.statusCode).toBe(409);
    expect(refused.body).toContain('<li>Description is now: Theirs</li>');
    // The page names a choice as the form does.
    expect(refused.body).toContain(`<li>Visible to is now: ${audiences.organization}</li>`);
    expect(refused.body).toContain('>Mine</textarea>');
    expect(await description()).toBe('Theirs');

    const invalid = await submit(`${path}/edit`, { description: 'Mine', url: 'nonsense', version });
    expect(versionIn(invalid.body)).toBe(version);
    const fresh = versionIn(refused.body);
    expect(fresh).not.toBe(version);
    expect((await submit(`${path}/edit`, { description: 'Mine', version: fresh })).statusCode).toBe(303);
    expect(await description()).toBe('Mine');
  });

  const windowAt = (index: number, from: string) => ({
    [`windows.${index}.sat`]: 'true',
    [`windows.${index}.from`]: from,
    [`windows.${index}.to`]: '05:00',
    [`windows.${index}.timeZone`]: 'UTC',
  });
  const storedWindow = (from: string) => ({ days: ['sat'], from, to: '05:00', timeZone: 'UTC' });

  it.each([
    {
      title: 'The webhook settings were',
      path: '/admin/services/webhooks/settings',
      action: '/admin/services/webhooks/settings',
      theirs: { numberOfFailures: '81' },
      mine: { notificationAttempts: '4' },
      // The form shows what the other tab has saved.
      both: {},
      later: { numberOfFailures: '82' },
      problem: 'Failures that deactivate a webhook is now: 81',
      theirsStored: { numberOfFailures: 81, notificationAttempts: 3 },
      bothStored: { numberOfFailures: 81, notificationAttempts: 4 },
      unversioned: { numberOfFailures: '5', notificationAttempts: '3' },
    },
    {
      title: 'The maintenance windows were',
      path: '/admin/system/upgrades/config',
      action: '/admin/system/upgrades/config/update',
      theirs: windowAt(0, '01:00'),
      mine: windowAt(0, '03:00'),
      both: { ...windowAt(0, '01:00'), ...windowAt(1, '03:00') },
      later: { ...windowAt(0, '02:00'), ...windowAt(1, '03:00') },
      problem: 'Windows is now: sat 01:00–05:00 UTC',
      theirsStored: { windows: [storedWindow('01:00')] },
      bothStored: { windows: [storedWindow('01:00'), storedWindow('03:00')] },
      unversioned: { windows: '[]' },
    },
  ])('is refused in a second tab: $title changed', async (one) => {
    const open = async () => formOf((await page(one.path)).body, one.action)?.fields;
    const send = (...fields: (Record<string, string> | undefined)[]) =>
      server.post(one.action, Object.assign({}, ...fields) as Record<string, string>, { cookie });
    const stored = async () => (await server.get(one.path, { cookie })).json<object>();
    const [tab, other] = [await open(), await open()];

    expect((await send(other, one.theirs)).statusCode).toBe(303);
    const refused = await send(tab, one.mine);
    expect(refused.statusCode).toBe(409);
    expect(refused.body).toContain(
      `${one.title} changed meanwhile. Nothing was saved: check the values, and send them again.`,
    );
    expect(refused.body).toContain(`<li>${one.problem}</li>`);
    // What only this tab has changed is no conflict.
    expect(refused.body).not.toContain('Attempts per delivery is now');
    expect(formOf(refused.body, one.action)?.fields).toMatchObject(
      Object.fromEntries(Object.entries(one.mine).filter(([, value]) => value !== 'true')),
    );
    expect(await stored()).toMatchObject(one.theirsStored);
    const api = await server.post(one.action, { token, version: tab?.version ?? '', ...one.unversioned });
    expect([api.statusCode, await stored()]).toMatchObject([409, one.theirsStored]);

    expect((await send(formOf(refused.body, one.action)?.fields, one.both)).statusCode).toBe(303);
    expect(await stored()).toMatchObject(one.bothStored);
    // A tab that has saved shows the page again, and may save again.
    for (const fields of [one.later, one.both])
      expect((await send(await open(), fields)).statusCode).toBe(303);
    expect((await server.post(one.action, { token, ...one.unversioned })).statusCode).toBe(200);
  });

  it('has no version in its command', async () => {
    for (const form of [`${path}/edit`, '/admin/services/webhooks/settings'])
      expect((await page(form)).body).not.toContain('--data-urlencode version=');
  });
});

it('a refusal for what is no field of the form names no field to correct', async () => {
  const { statusCode, body } = await page('/admin/services/createFolder?x=%zz');
  expect(statusCode).toBe(400);
  expect(body).toMatch(/<strong>Invalid or missing input parameters\.<\/strong>[^]*<li>x: must be /);
});

describe('a refused form keeps its input', () => {
  it('if a field is invalid, and shows the problem beside it', async () => {
    const { statusCode, body } = await submit('/admin/services/createFolder', {
      folderName: 'a.b',
      description: 'Kept',
    });
    expect(statusCode).toBe(400);
    expect(body).toMatch(/aria-describedby="folderName-hint folderName-problem"[^>]*aria-invalid="true"/s);
    expect(body).toContain('>Kept</textarea>');
    expect(body).toContain('<title>Error: Create folder');
    expect(body).toMatch(/<div role="alert" class="problems" tabindex="-1" autofocus>/);
    expect(body).toMatch(/<strong>Please correct one field\.<\/strong>[^]*<li>Folder name must [^<]+<\/li>/);
    expect(body).not.toContain('folderName: ');
  });

  it('in read-only mode', async () => {
    await submit('/admin/mode/update', { isReadOnly: 'true' });
    const { statusCode, body } = await submit('/admin/services/createFolder', {
      folderName: 'Kept',
      next: '/admin/mode',
    });
    await submit('/admin/mode/update', { isReadOnly: 'false' });
    expect(statusCode).toBe(503);
    expect(body).toMatch(/name="folderName"[^>]* value="Kept"/);
    expect(body).toContain('name="next" value="/admin/mode"');
    expect(body).toContain('popovertarget="account"');
  });

  it('but not if the caller lacks the role', async () => {
    const fields = { f: 'html', token: server.token('member'), folderName: 'Secret' };
    const { statusCode, body } = await server.post('/admin/services/createFolder', fields);
    expect(statusCode).toBe(403);
    expect(body).not.toContain('Secret');
  });
});

it('an error page shows the user, and outside the admin directory a link to it', async () => {
  expect((await page('/admin/nope')).body).toContain('popovertarget="account"');
  expect((await page('/nope')).body).toContain('<a href="/admin"');
});

describe('commands to copy', () => {
  const commandsOf = async (path: string) =>
    [...(await page(path)).body.matchAll(/<pre [^>]*data-copy>([^<]*)</g)].map(([, text]) =>
      (text ?? '').replaceAll('&quot;', '"').replaceAll('&#39;', "'"),
    );

  it('contain the variable TOKEN, and quote names for the shell', async () => {
    await submit('/admin/services/createFolder', { folderName: "It's (odd)" });
    const [command] = await commandsOf("/admin/services/It's%20(odd)");
    expect(command).toBe(
      `curl -H "Authorization: Bearer $TOKEN" 'http://localhost:8080/admin/services/It%27s%20(odd)?f=pjson'`,
    );
  });

  it('show … instead of a text from a link with control characters', async () => {
    for (const control of ['%1b[201~', '%0d', '%09', '%c2%9b2J', '%7f']) {
      const [command = ''] = await commandsOf(`/admin/services/createFolder?folderName=a${control}b&f=html`);
      expect(command).toContain("folderName='…'");
    }
    const [command] = await commandsOf('/admin/services/createFolder?folderName=a%0d%0ab&f=html');
    expect(command).toContain("folderName='a\nb'");
  });

  it('come with a JSON link that keeps the query of the page', async () => {
    const { body } = await page('/admin/system/upgrades?after=3&wait=0');
    expect(body).toContain('href="?after=3&amp;wait=0&amp;f=pjson"');
  });

  it('send the token as a field if it is a parameter of the operation', async () => {
    expect(await commandsOf('/tokens/revokeToken?f=html')).toEqual([
      `curl 'http://localhost:8080/tokens/revokeToken' \\\n  --data-urlencode token="$TOKEN"`,
    ]);
    expect((await commandsOf('/admin/security/users/add'))[0]).toContain('password="$PASSWORD"');
  });
});

describe('the stylesheet', () => {
  it('may be cached for a year under its hash, and only there', async () => {
    const { body } = await page('/admin');
    const href = /rel="stylesheet" href="([^"]+)"/.exec(body)?.[1] ?? '';
    const { headers } = await server.get(href);
    expect([headers['content-type'], headers['cache-control']]).toEqual([
      'text/css; charset=utf-8',
      'public, max-age=31536000, immutable',
    ]);
    expect((await server.get('/admin/assets/steward.css?v=other')).headers['cache-control']).toBe('no-cache');
    const refused = await server.post('/admin/assets/steward.css');
    expect([refused.statusCode, refused.headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});

it.each(['/admin', '/admin/services/createFolder', '/admin/nope', '/services'])(
  'the page %s has all security headers',
  async (path) => {
    const { headers } = await page(path);
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
  },
);

describe('the notice of an operation', () => {
  const read = (cookie: string) => readNotice(cookie.split(';', 1)[0]?.split('=')[1]);

  it('keeps its link', () => {
    const notice = { text: 'Created.', link: { name: 'Maps', href: '/admin/services/Maps' } };
    expect(read(writeNotice(notice, true))).toMatchObject(notice);
  });

  it('loses a link with which a browser would drop the cookie', () => {
    const link = { name: 'n'.repeat(1000), href: `/admin/${'h'.repeat(2000)}` };
    const cookie = writeNotice({ text: 't'.repeat(500), link }, true);
    expect(cookie.length).toBeLessThan(4096);
    expect(read(cookie)).toEqual({ text: 't'.repeat(500), link: undefined, isProblem: false });
  });
});
