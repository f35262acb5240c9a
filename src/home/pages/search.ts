// The search of the console: pages, services, webhooks, users and jobs that contain all words.
import { listUsers } from '../../auth/user.ts';
import type { CatalogCache } from '../../catalog/catalog-cache.ts';
import { audienceOf, pathOfService } from '../../catalog/catalog.ts';
import { searchListing } from '../../catalog/listing.ts';
import { mayCall } from '../../lib/caller.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { newestJob } from '../../upgrades/jobs/job-table.ts';
import { jobTitle } from '../../upgrades/pages/job-parts.ts';
import { formatReceiver } from '../../webhooks/pages/parts.ts';
import { listWebhooks } from '../../webhooks/webhook.ts';
import { navigation } from './frame.ts';

type SearchOptions = { readonly store: ReadableStore; readonly catalogCache: CatalogCache };

type Found = { readonly name: string; readonly path: readonly string[]; readonly hint?: string | undefined };

/** `list` is the path of the page that finds the rest. */
type Group = { readonly title: string; readonly list?: readonly string[]; readonly found: readonly Found[] };

const maxFound = 20;
const searchedJobs = 100;

export async function showSearch(
  options: SearchOptions,
  query: string,
  page: PageContext<unknown>,
): Promise<Html> {
  const groups = await findAll(options, query, page);
  const shown = groups.filter(({ found }) => found.length > 0);
  if (shown.length === 0)
    return html`<p>Nothing contains “${query}”. <a href="${page.href()}">Go to the home page</a></p>`;
  return html`${shown.map(
    ({ title, list, found }) =>
      html`<section>
          <h2>${title}</h2>
          <ul class="recent">
            ${found
              .slice(0, maxFound)
              .map(
                ({ name, path, hint }) =>
                  html`<li><a href="${page.href(...path)}"><bdi>${name}</bdi></a> ${hint !== undefined && html`<span class="hint">${hint}</span>`}</li> `,
              )}
          </ul>
          ${found.length > maxFound && html`<p class="hint">… and ${list ? html`<a href="${page.href(...list)}?${new URLSearchParams({ q: query }).toString()}">${found.length - maxFound} more</a>` : `${found.length - maxFound} more`}.</p>`}
        </section> `,
  )}`;
}

async function findAll(
  { store, catalogCache }: SearchOptions,
  query: string,
  { caller, now }: PageContext<unknown>,
): Promise<Group[]> {
  const words = query.toLowerCase().split(/\s+/);
  const contains = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  const matching = (all: readonly Found[]) =>
    all.filter(({ name, hint = '' }) => contains(`${name} ${hint}`));
  const listing = catalogCache.listing(audienceOf(caller));
  const { services = [] } = searchListing(listing, query) ?? {};
  const pages = navigation(store, () => now)
    .filter(({ access }) => mayCall(caller, access))
    .map(({ name, path, group }) => ({ name, path, hint: group }));
  const paths = services.map(pathOfService);
  const ofAll: Group[] = [
    { title: 'Pages', found: matching(pages) },
    {
      title: 'Services',
      list: ['services'],
      found: paths.map((name) => ({ name, path: ['services', ...name.split('/')] })),
    },
  ];
  if (!mayCall(caller, 'administrator')) return ofAll;
  const newest = store.read(newestJob);
  const older = newest ? (await store.jobs.page(newest.number, 0, searchedJobs)).jobs : [];
  const jobs = [...(newest ? [newest] : []), ...older].map((job) => ({
    name: jobTitle(job),
    path: ['system', 'jobs', job.id],
    hint: job.state,
  }));
  const webhookPath = ['services', 'webhooks'];
  const webhooks = listWebhooks(store).map((webhook) => ({
    name: webhook.name,
    path: [...webhookPath, webhook.id],
    hint: formatReceiver(webhook),
  }));
  const userPath = ['security', 'users'];
  const users = listUsers(store).map(({ username, role }) => ({
    name: username,
    path: userPath,
    hint: role,
  }));
  return [
    ...ofAll,
    { title: 'Webhooks', list: webhookPath, found: matching(webhooks) },
    { title: 'Users', list: userPath, found: matching(users) },
    { title: 'Jobs', found: matching(jobs) },
  ];
}
