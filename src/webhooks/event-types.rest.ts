// The event types in the REST API and in the OpenAPI document.
import * as z from 'zod';
import { renderTable } from '../console/table.ts';
import { html, type Html } from '../lib/html.ts';
import type { Json } from '../lib/json.ts';
import { type JsonSchema, answerObject, toJsonSchema } from '../rest/answer.ts';
import type { Components } from '../rest/openapi/schemas.ts';
import { type Resource, resource } from '../rest/resource.ts';
import { type EventType, eventTypes } from './event-types.ts';
import { contentTypes } from './webhook.ts';

const eventTypesAnswer = answerObject('EventTypes', 'The types of events that the server sends.', {
  eventTypes: z.array(
    answerObject('EventType', 'A type of events.', {
      type: z.string().describe('The name, as in changeTypes.'),
      description: z.string(),
      schema: z.record(z.string(), z.unknown()).describe('The JSON Schema of data.'),
      example: z.record(z.string(), z.unknown()).describe('An example of data.'),
    }),
  ),
});

function readEventTypes() {
  const all = eventTypes.map(({ type, description, data, example }) => ({
    type,
    description,
    schema: toJsonSchema(data),
    example: example.data,
  }));
  return { eventTypes: all };
}

export const eventTypesResource: Resource = resource({
  title: 'Event types',
  description: 'The types of events that the server itself sends, each with its JSON Schema and an example.',
  answer: eventTypesAnswer,
  read: readEventTypes,
  view: showEventTypes,
});

function showEventTypes(): Html {
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

/** The `webhooks` of the OpenAPI document: the request that a receiver gets, for each type. */
export function eventTypesInOpenApi(components: Components): { readonly [type: string]: Json } {
  return Object.fromEntries(
    eventTypes.map((eventType) => [eventType.type, { post: requestOf(eventType, components) }]),
  );
}

const headers = {
  'webhook-id': 'The id of the event, the same in every attempt and redelivery.',
  'webhook-timestamp': 'The time of the attempt, in seconds since the epoch.',
  'webhook-signature':
    'One signature for each valid key, separated by blanks: v1, and the base64 of HMAC-SHA-256 over webhook-id, webhook-timestamp and the body, joined by dots.',
};

function requestOf({ type, description, data, example }: EventType, components: Components): Json {
  const [json, form] = contentTypes;
  const dataSchema = toJsonSchema(data);
  // The body format of the webhook decides.
  const envelope = components.reference('schemas', `${type}Event`, bodySchema(type, dataSchema));
  const schema = { anyOf: [envelope, components.reference('schemas', `${type}Payload`, dataSchema)] };
  const body = {
    id: '0f5c4f1e-8f0f-4d7e-9d35-0b7f0e6b9a41',
    type,
    timestamp: 1794817682477,
    service: example.service,
    webhookId: '5f0f4f0e-2f9c-4d8e-8b0a-7c1d1f4b7a22',
    webhookName: 'Operations',
    data: example.data,
  };
  return {
    operationId: `receive${type}`,
    summary: type,
    description: `${description} The server sends it to every webhook that subscribes to it.`,
    parameters: Object.entries(headers).map(([name, text]) =>
      components.reference('parameters', name, {
        name,
        in: 'header',
        required: true,
        description: text,
        schema: { type: 'string' },
      }),
    ),
    requestBody: {
      required: true,
      content: {
        [json]: { schema, examples: { envelope: { value: body }, payload: { value: example.data } } },
        [form]: {
          schema: {
            type: 'object',
            properties: { payload: { type: 'string', contentMediaType: json, contentSchema: schema } },
            required: ['payload'],
          },
        },
      },
    },
    responses: {
      '2XX': { description: 'The receiver has the event.' },
      default: { description: 'The attempt has failed.' },
    },
    security: [],
  };
}

function bodySchema(type: string, data: JsonSchema): JsonSchema {
  const properties = {
    id: { type: 'string', description: 'The id of the event.' },
    type: { const: type },
    timestamp: { type: 'integer', description: 'When the event happened, in milliseconds since the epoch.' },
    service: { type: ['string', 'null'], description: 'The service that the event concerns.' },
    webhookId: { type: 'string' },
    webhookName: { type: 'string' },
    data,
  };
  return { type: 'object', properties, required: Object.keys(properties) };
}
