// Shared by the tests of the upgrades page: a browser without scripts, which sends the forms of a page.
import { expect } from 'vitest';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { type Server, startServer } from '../kit/server.ts';

export const token = 'token-of-the-administrator';
export const cookie = `steward_session=${token}`;
export const upgrades = '/admin/system/upgrades';
export const eleven = 'rel_14072022_2632';
export const patch1 = 'pat_17022022_1250';

export const hour = 3_600_000;

/** The path of the page of a job. */
export const jobPage = /^\/admin\/system\/jobs\/[^/]+$/;

export const plain = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

/** The path of the link with the label. */
export function linkOf(page: string, label: string): string {
  const href = new RegExp(`href="([^"]*)"[^>]*>${label}</a>`).exec(page)?.[1];
  if (href === undefined) throw new Error(`There is no link ${label}.`);
  return plain(href);
}

/** The form whose action ends with `actionEnd`, with what its inputs and lists contain. */
export function formOf(page: string, actionEnd: string) {
  const forms = page.match(/<form[\s\S]*?<\/form>/g) ?? [];
  const found = forms.find((form) => new RegExp(`action="[^"]*${actionEnd}"`).test(form));
  if (found === undefined) return undefined;
  const inputs = [...found.matchAll(/<input (?!type="checkbox")[^>]*?name="([^"]*)"[^>]*? value="([^"]*)"/g)];
  // A browser sends the first option of a list in which none is selected.
  const lists = [...found.matchAll(/<select[^>]* name="([^"]*)"[^>]*>([\s\S]*?)<\/select>/g)].map(
    ([list, name, options = '']) => [
      list,
      name,
      (/<option value="([^"]*)" ?selected/.exec(options) ?? /<option value="([^"]*)"/.exec(options))?.[1],
    ],
  );
  const texts = [...found.matchAll(/<textarea[^>]* name="([^"]*)"[^>]*>([^<]*)<\/textarea>/g)];
  // The reader types what the page asks for.
  const confirmed = [...found.matchAll(/<label for="(confirmVersion)"\s*>Type (\S+) to confirm/g)];
  return {
    action: /action="([^"]*)"/.exec(found)?.[1] ?? '',
    fields: Object.fromEntries(
      [...inputs, ...lists, ...texts, ...confirmed].map(([, name = '', value = '']) => [name, plain(value)]),
    ),
  };
}

/** `server` is the one that the test has started. */
export function usePage() {
  const server = {} as Server;

  async function start(env: Record<string, string> = {}): Promise<void> {
    Object.assign(server, await startServer({ env: { UPGRADE_STEP_MS: '1000', ...env } }));
  }

  const show = async (path: string, query: Record<string, string> = {}) => {
    const search = new URLSearchParams(query).toString();
    const response = await server.get(`${path}${search && `?${search}`}`, { accept: 'text/html', cookie });
    expect(response.statusCode, response.body).toBe(200);
    return response.body;
  };

  const open = (query?: Record<string, string>) => show(upgrades, query);

  /** The first step of the wizard. For a patch, that is the plan. */
  const openWizard = (version: string, query: Record<string, string> = {}) =>
    show(`${upgrades}/plan`, { versionManifest: JSON.stringify({ id: version }), ...query });

  /** Sends the settings. Their names begin with the type: `Text.licenseUpload`. */
  async function openPlan(version: string, settings: Record<string, string> = {}): Promise<string> {
    const form = formOf(await openWizard(version), '/plan');
    const entered = Object.entries(settings).map(([name, text]) => [`upgradeSettings.${name}`, text]);
    const fields = { ...form?.fields, ...(Object.fromEntries(entered) as Record<string, string>) };
    const response = await server.post(form?.action ?? '', fields, { cookie });
    expect(response.statusCode, response.body).toBe(200);
    return response.body;
  }

  const openVersions = () => show(`${upgrades}/available`);

  /** The page of the newest job. */
  const openJob = (query?: Record<string, string>) =>
    show(`/admin/system/jobs/${server.store.read(newestJob)?.id ?? ''}`, query);

  /** Sends a form of the page, and returns the path that the answer redirects to. */
  async function send(page: string, actionEnd: string): Promise<string> {
    const form = formOf(page, actionEnd);
    if (!form) throw new Error(`There is no form for ${actionEnd} in ${page}`);
    const response = await server.post(form.action, form.fields, { cookie });
    expect(response.statusCode, response.body).toBe(303);
    return new URL(response.headers.location ?? '', 'http://localhost').pathname;
  }

  async function upload(name: string, content: string): Promise<string> {
    const file = { itemFile: { name, content } };
    const response = await server.postParts('/admin/uploads/upload', file, token);
    return response.json<{ item: { itemID: string } }>().item.itemID;
  }

  /** Starts a release through the wizard. */
  async function startRelease(): Promise<void> {
    const licenseUpload = await upload('license.json', '{}');
    const planned = await openPlan(eleven, {
      'Text.licenseUpload': licenseUpload,
      'Boolean.updateToLatestPatch': 'false',
    });
    expect(await send(planned, '/upgrade')).toMatch(jobPage);
  }

  return {
    server,
    start,
    show,
    open,
    openWizard,
    openPlan,
    openVersions,
    openJob,
    send,
    upload,
    startRelease,
  };
}
