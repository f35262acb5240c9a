// One service of the catalog for people: its facts, who is told of it, and what can be done with it.
import { mayCall } from '../../caller.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import { actionButton } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import { renderFacts } from '../../rest/html/table.ts';
import { type Service, type ServiceAccess, addressOfService, rootFolder } from '../catalog.ts';

export type ServiceViewOptions = {
  /** `{base_url}` of the spec, as clients are told it. */
  baseUrl: () => string;
  /** Who is told what happens to a service. */
  webhooksOf: (service: Service) => readonly WebhookLine[];
};

type WebhookLine = { readonly id: string; readonly name: string; readonly active: boolean };

export const audiences: Record<ServiceAccess, string> = {
  public: 'everybody',
  organization: 'any token',
  administrators: 'administrators only',
};

const mostWebhooks = 50;

export function showService({ baseUrl, webhooksOf }: ServiceViewOptions): View<Service> {
  return (shown) => {
    const { subject, caller } = shown;
    const mayChange = mayCall(caller, 'publisher');
    const home = [subject.folderName].filter((name) => name !== rootFolder);
    return html`<section aria-labelledby="facts">
        <h2 id="facts">Facts</h2>
        ${renderFacts(factsOf(subject, shown.href('services', ...home), baseUrl()))}
      </section>
      ${mayCall(caller, 'administrator') && webhooksView(shown, webhooksOf(subject))}
      ${
        mayChange &&
        html`<p><a class="button" href="${shown.here('edit')}">Edit service</a></p>
          ${destructiveAction(shown, {
            label: 'Delete service',
            action: shown.here('delete'),
            next: shown.href('services', ...home),
            warning: 'It disappears from the catalog at once. Webhooks that want to know are told.',
          })}`
      }`;
  };
}

function factsOf(service: Service, folderHref: string, baseUrl: string): [string, Html | string][] {
  const { folderName, type, access, description, capabilities, parentType, url, createdAt, updatedAt } =
    service;
  const none = html`<span class="none">–</span>`;
  return [
    ['Description', description || none],
    ['Folder', html`<a href="${folderHref}">${folderName === rootFolder ? 'the root' : folderName}</a>`],
    ['Type', type],
    ['Extends', parentType || none],
    ['Capabilities', capabilities.replaceAll(',', ', ') || none],
    ['Seen by', audiences[access]],
    [
      'Address',
      url === null
        ? html`<code>${addressOfService(service, baseUrl)}</code> <span class="hint">(given by the catalog)</span>`
        : html`<a href="${url}" rel="noreferrer">${url}</a>`,
    ],
    ['Created', renderTime(createdAt)],
    ['Changed', renderTime(updatedAt)],
  ];
}

function webhooksView({ href, here }: PageContext<Service>, webhooks: readonly WebhookLine[]): Html {
  return html`<section aria-labelledby="webhooks">
    <h2 id="webhooks">Webhooks of this service</h2>
    ${webhooks.length === 0 && html`<p class="none">No webhooks.</p>`}
    <ul class="plain">
      ${webhooks.slice(0, mostWebhooks).map(
        ({ id, name, active }) =>
          html`<li>
            <a href="${href('services', 'webhooks', id)}">${name}</a>
            <span class="${active ? 'state good' : 'state bad'}">${active ? 'active' : 'inactive'}</span>
          </li> `,
      )}
    </ul>
    ${webhooks.length > mostWebhooks && html`<p>… and ${webhooks.length - mostWebhooks} more.</p>`}
    <p><a href="${here('webhooks', 'create')}">Create webhook</a></p>
  </section>`;
}

/** What cannot be taken back takes two steps, with or without script; nothing where the browser has no session. */
export function destructiveAction(
  { formToken }: PageContext<unknown>,
  { label, warning, action, next }: { label: string; warning: string; action: string; next: string },
): Html | false {
  return (
    formToken !== '' &&
    html`<details class="grave">
    <summary>${label} …</summary>
    <p>${warning}</p>
    ${actionButton({ action, label, formToken, next, isDestructive: true })}
  </details>`
  );
}
