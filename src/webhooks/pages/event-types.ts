// The page of the event types: what each means, and an example of its data.
import { renderTable } from '../../console/table.ts';
import { html, type Html } from '../../lib/html.ts';
import { eventTypes } from '../event-types.ts';

export function showEventTypes(): Html {
  return renderTable(
    'Event types',
    ['Type', 'Sent when', 'Example of data'],
    eventTypes.map(({ type, description, example }) => [
      html`<code>${type}</code>`,
      description,
      html`<details>
        <summary>Example<span class="unseen"> of ${type}</span></summary>
        <pre tabindex="0">${JSON.stringify(example.data, null, 2)}</pre>
      </details>`,
    ]),
  );
}
