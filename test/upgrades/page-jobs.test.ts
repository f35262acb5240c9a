// The upgrades page while a job runs and after it, also opened with a bearer token. test/pages has its texts.
import { describe, expect, it } from 'vitest';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { releaseOf } from '../kit/versions.ts';
import {
  cookie,
  eleven,
  formOf,
  hour,
  jobPage,
  linkOf,
  patch1,
  token,
  upgrades,
  usePage,
} from './page-kit.ts';

const { server, start, show, open, openWizard, openJob, send, startRelease } = usePage();

describe('a page opened with a token, without a session', () => {
  const openByToken = async (path: string) =>
    (await server.get(path, { accept: 'text/html', authorization: `Bearer ${token}` })).body;
  const expectNoButtons = (page: string) => {
    expect(page).toContain('Sign in</a> first: this page changes something only for a signed-in browser.');
    expect(page).not.toMatch(/<form[^>]*action="[^"]*\/(cancel|resume|upgrade|rollback|upload)"/);
  };

  it('is that of the token, also if the browser has a session of another user', async () => {
    await start();
    await send(await openWizard(patch1), '/upgrade');
    const { body } = await server.get(`${upgrades}?f=html&token=${token}`, {
      cookie: `steward_session=${server.token('member')}`,
    });
    expect(body).toContain('In progress');
    expect(body).not.toContain('data-running');
  });

  it('offers no start, upload, resume or rollback', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    const wizardOf = (id: string) =>
      `${upgrades}/plan?${new URLSearchParams({ versionManifest: JSON.stringify({ id }) }).toString()}`;
    expectNoButtons(await openByToken(wizardOf(patch1)));
    const settings = await openByToken(wizardOf(eleven));
    expectNoButtons(settings);
    expect(settings).not.toContain('uploads/upload');
    await send(await openWizard(patch1), '/upgrade');
    await server.runtime.advance(hour);
    expect(formOf(await openByToken(upgrades), '/rollback')).toBeUndefined();
    expect(await openByToken(`${upgrades}/rollback`)).toContain(
      'Sign in</a> first: this page changes something only for a signed-in browser.',
    );
    await startRelease();
    await server.runtime.advance(hour);
    expectNoButtons(await openByToken(upgrades));
  });
});

describe('while a job runs', () => {
  it('is reloaded without scripts, and grows', async () => {
    await start();
    await startRelease();
    await server.runtime.advance(60_000);
    for (const page of [await open(), await openJob()])
      expect(page).toContain('<noscript><meta http-equiv="refresh" content="10" /></noscript>');
    const messagesIn = (text: string) => text.match(/<li id="message-\d+" data-code=/g)?.length ?? 0;
    const before = messagesIn(await openJob());
    await server.runtime.advance(2000);
    expect(messagesIn(await openJob())).toBeGreaterThan(before);
    expect((await server.get(`${upgrades}/available?token=${token}`)).statusCode).toBe(409);
  });

  it('cancels a patch', async () => {
    await start();
    await send(await openWizard(patch1), '/upgrade');
    await server.runtime.advance(9_000);
    expect(await send(await open(), '/cancel')).toBe(upgrades);
    const cancelling = await open();
    expect(cancelling).toContain('administrator has asked to cancel it');
    expect(formOf(cancelling, '/cancel')).toBeUndefined();
  });

  it('stops a job that puts workloads back', async () => {
    await start({ SIMULATED_FAILURES: 'SECURITY_DIRECTORY:1' });
    await send(await openWizard(patch1), '/upgrade');
    const isReverting = () => server.store.read(newestJob)?.reverting !== null;
    for (let seconds = 0; seconds < 60 && !isReverting(); seconds += 1) await server.runtime.advance(1000);
    await send(await open(), '/cancel');
    const stopping = await open();
    expect(stopping).toContain('administrator has asked to stop putting workloads back.');
    expect(formOf(stopping, '/cancel')).toBeUndefined();
  });

  it('offers to cancel a release until its plan is executed', async () => {
    await start();
    await startRelease();
    expect(formOf(await open(), '/cancel')).toBeDefined();
    await server.runtime.advance(60_000);
    expect(formOf(await open(), '/cancel')).toBeUndefined();
  });
});

describe('a job of several hops', () => {
  const versions = ['2000', '3000'].map((build, index) => ({
    ...releaseOf(`rel_${build}`, build, index === 0 ? '1234' : '2000'),
    containers: ['ONE', 'TWO'].slice(0, index + 1).map((name) => ({ name, image: `${name}:${build}` })),
  }));

  it('can be cancelled between hops, and shows which version is installed and since when', async () => {
    await start({ SIMULATED_FAILURES: 'TWO:1' });
    const versionManifestFile = { name: 'm.json', content: JSON.stringify(versions) };
    const versionManifest = '{"id":"rel_3000"}';
    await server.postParts(
      `${upgrades}/upgrade`,
      { versionManifest, versionManifestFile, upgradeSettings: '{}' },
      token,
    );
    const first = await open();
    expect(formOf(first, '/cancel')).toBeDefined();
    expect(first).not.toContain('cannot be cancelled');
    await server.runtime.advance(12_000);
    const later = await openJob();
    expect(formOf(later, '/cancel')).toBeUndefined();
    expect(later).toContain('It cannot be cancelled now, only between two versions.');
    expect(later).toMatch(
      /<ol class="phases" aria-label="Versions">\s*<li[^>]*>\s*<strong>Version 1 of 2: 10\.9\.2/,
    );
    await server.runtime.advance(hour);
    const failed = await open();
    expect(failed).toContain(
      'The version is now 10.9.2.2000. 1 of 2 deployments already runs the new images.',
    );
    const { endedAt, hops } = server.store.read(newestJob) ?? {};
    const at = hops?.installedAt.rel_2000 ?? 0;
    expect(at).toBeLessThan((endedAt ?? 0) - 5000);
    expect(failed).toMatch(
      new RegExp(`<dt>Since</dt>\\s*<dd><time datetime="${new Date(at).toISOString()}"`),
    );
  });
});

describe('after a job', () => {
  it('shows the messages of one component, of one kind, or that contain a text', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    await startRelease();
    await server.runtime.advance(hour);
    const linesOf = (page: string) =>
      [...page.matchAll(/<li id="message-\d+" data-code="(\d+)"[^]*?<span>(.*?)<\/span>/g)].map(
        ([, code, line = '']) => ({ code, line }),
      );
    const about = linesOf(await openJob({ component: 'ADMIN' }));
    expect(about.length).toBeGreaterThan(5);
    for (const { line } of about) expect(line).toContain('ADMIN');
    const errors = await openJob({ show: 'errors' });
    expect(linesOf(errors).map(({ code }) => code)).toEqual(['2901']);
    expect(errors).toMatch(/1 of \d+ messages\./);
    const found = linesOf(await openJob({ q: 'pre-DIAGNOSTICS' }));
    expect(found.map(({ code }) => code)).toEqual(['2287', '2288']);
    expect(linesOf(await openJob({ q: '2288', component: 'ADMIN' }))).toEqual([]);
  });

  it('returns all messages of a job as a file', async () => {
    await start();
    await send(await openWizard(patch1), '/upgrade');
    await server.runtime.advance(hour);
    const href = /href="([^"]*f=csv)">Download</.exec(await openJob())?.[1] ?? '';
    const { headers, body } = await server.get(href, { cookie });
    expect(headers['content-disposition']).toBe('attachment; filename="messages.csv"');
    const lines = body.trimEnd().split('\r\n');
    expect(lines[0]).toBe('when,code,message');
    expect(lines).toHaveLength(1 + (server.store.read(newestJob)?.messageCount ?? 0));
    expect(lines[1]).toMatch(/^2026-\S+Z,2010,/);
  });

  it('adds up the runs of a resumed job', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    await startRelease();
    await server.runtime.advance(hour);
    await send(await open(), '/resume');
    await server.runtime.advance(5_000);
    const page = await openJob();
    expect(page).toMatch(/<dd>1 h<\/dd>/);
    expect(page).toMatch(/<dt>This run<\/dt>\s*<dd>5 s<\/dd>/);
    expect(page).toMatch(/> The job failed at the step &quot;Update deployment MAP_SERVER&quot;: /);
    expect(page).toContain('> The job was resumed by administrator.');
    expect(await show('/admin/system/jobs')).toContain('after a failure');
  });

  it('is resumed outside of the windows only after a question', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    await startRelease();
    await server.runtime.advance(hour);
    // The first day is a Thursday.
    const windows = '[{"days":["sat"],"from":"22:00","to":"04:00","timeZone":"UTC"}]';
    expect(formOf(await openJob(), '/resume')).toBeDefined();
    await server.post(`${upgrades}/config/update`, { windows, token });
    for (const path of ['/admin', upgrades]) expect(formOf(await show(path), '/resume')).toBeUndefined();
    const question = await show(linkOf(await openJob(), 'Resume outside of the windows …'));
    expect(question).toContain('No maintenance window is open until Sat 03 Jan, 22:00 in UTC.');
    expect(await send(question, '/resume')).toMatch(jobPage);
    expect(server.store.read(newestJob)?.state).toBe('in_progress');
  });

  it('says that a failed patch has put back all deployments', async () => {
    await start({ SIMULATED_FAILURES: 'SECURITY_DIRECTORY:1' });
    await send(await openWizard(patch1), '/upgrade');
    await server.runtime.advance(hour);
    expect(await openJob()).toContain('All deployments run 10.9.1.1234 again.');
    expect(await open()).not.toContain('>Mixed<');
  });

  it('lists the job with a link to its page, which says why a button was refused', async () => {
    await start({ SIMULATED_FAILURES: 'MAP_SERVER:1' });
    await startRelease();
    await server.runtime.advance(hour);
    const { jobId } = (await server.get(`${upgrades}?token=${token}`)).json<{ jobId: string }>();
    const path = `/admin/system/jobs/${jobId}`;
    expect(await show('/admin/system/jobs')).toContain(
      `<a href="${path}">Upgrade from 10.9.1.1234 to 11.0.0.2632</a>`,
    );
    const page = await show(path);
    expect(page).toMatch(
      /The version is still 10\.9\.1\.1234\. \d+ of 48 deployments already run the new images\./,
    );
    expect(await open()).toMatch(/10\.9\.1\.1234<\/span> <span class="state warn" title="[^"]*">Mixed</);
    expect(await send(page, '/resume')).toBe(path);
    const running = await show(path);
    expect(running).toContain('In progress');
    expect(running).toMatch(new RegExp(`data-running="${jobId}"`));
    // The page was left open in another tab.
    const form = formOf(page, '/resume');
    const again = await server.post(form?.action ?? '', form?.fields, { cookie });
    expect([again.statusCode, again.headers.location]).toEqual([303, path]);
    const [notice = ''] = String(again.headers['set-cookie']).split(';');
    const left = await server.get(path, { accept: 'text/html', cookie: `${cookie}; ${notice}` });
    expect(left.body).toMatch(/<p role="alert" class="problems">\s*The job/);
  });

  it('shows the newest 200 of 60,000 messages', async () => {
    await start();
    await send(await openWizard(patch1), '/upgrade');
    await server.runtime.advance(hour);
    const { jobId } = (await server.get(`${upgrades}?token=${token}`)).json<{ jobId: string }>();
    const many = Array.from({ length: 60_000 }, (_, number) => ({
      code: 2038,
      message: `${number}`,
      when: 0,
    }));
    await server.store.update((transaction) => {
      const job = transaction.read(newestJob);
      if (job?.id !== jobId) throw new Error('The job is not the newest.');
      transaction.jobs.appendMessages(jobId, job.messageCount, many);
      transaction.write(newestJob, { ...job, messageCount: job.messageCount + many.length });
    });
    const page = await openJob();
    expect(page.match(/<li id="message-\d+" data-code=/g)).toHaveLength(200);
    expect(page).toContain('<span>59999</span>');
    expect(page).toContain(`href="/admin/system/jobs/${jobId}?f=csv"`);
    expect(page).toContain('the newest 200 are shown');
    expect(page.length).toBeLessThan(60_000);
  });
});
