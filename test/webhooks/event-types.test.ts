// Tests of the event types: their schemas, their examples, and pings with a chosen type.
import { expect, it } from 'vitest';
import * as z from 'zod';
import { perTest } from '../kit/cleanup.ts';
import { bodyOf, startHooks } from '../kit/hooks.ts';

const hooks = perTest(startHooks);

type EventType = { type: string; description: string; schema: object; example: Record<string, unknown> };

const listTypes = async () => (await hooks.read<{ eventTypes: EventType[] }>('/eventTypes')).eventTypes;

it('every type has a description, a schema and an example that matches it', async () => {
  const types = await listTypes();
  expect(types.map(({ type }) => type)).toEqual([
    'ServiceCreated',
    'ServiceUpdated',
    'ServiceDeleted',
    'UpgradeScheduled',
    'UpgradeMissed',
    'UpgradeStarted',
    'UpgradeSucceeded',
    'UpgradeFailed',
    'UpgradeCancelled',
    'VersionAdopted',
    'WebhookFailing',
    'WebhookRecovered',
    'WebhookDeactivated',
    'Ping',
  ]);
  for (const { description, schema, example } of types) {
    expect(description).toMatch(/\.$/);
    const parsed = z.fromJSONSchema({ ...schema, additionalProperties: false }).safeParse(example);
    expect(parsed.error).toBeUndefined();
  }
});

it('ping sends the example of the given type', async () => {
  const { id } = await hooks.register({ changeTypes: 'Other', active: 'false' });
  const types = await listTypes();
  for (const { type } of types) await hooks.act(`${id}/ping`, { changeType: type });
  await hooks.act(`${id}/ping`);
  await hooks.runtime.advance(1000);
  const received = hooks.arrivals.map((sent) => bodyOf(sent));
  const expected = [
    ...types.map(({ type, example }) => ({ type, data: example })),
    { type: 'Ping', data: {} },
  ];
  expect(received).toHaveLength(expected.length);
  for (const ping of expected) expect(received).toContainEqual(expect.objectContaining(ping));
  const refused = await hooks.post(
    `/admin/services/webhooks/${id}/ping`,
    { changeType: 'Other' },
    hooks.administrator,
  );
  expect(refused.json()).toMatchObject({
    error: {
      code: 400,
      details: [expect.stringMatching(/^changeType: must be one of ServiceCreated, .*, Ping\.$/)],
    },
  });
});

it('the OpenAPI document has the types under webhooks', async () => {
  const document = (await hooks.get('/admin/openapi.json')).json<{
    webhooks: Record<
      string,
      {
        post: {
          requestBody: {
            content: Record<string, { schema: object; examples: Record<string, { value: unknown }> }>;
          };
        };
      }
    >;
    components: { schemas: Record<string, object> };
  }>();
  const types = await listTypes();
  expect(Object.keys(document.webhooks)).toEqual(types.map(({ type }) => type));
  for (const { type, schema, example } of types) {
    const { 'application/json': json, 'application/x-www-form-urlencoded': form } =
      document.webhooks[type]?.post.requestBody.content ?? {};
    const refs = ['Event', 'Payload'].map((name) => ({ $ref: `#/components/schemas/${type}${name}` }));
    expect(json).toMatchObject({
      schema: { anyOf: refs },
      examples: { envelope: { value: { type, data: example } }, payload: { value: example } },
    });
    expect(form?.schema).toMatchObject({ properties: { payload: { contentSchema: json?.schema } } });
    const event = document.components.schemas[`${type}Event`];
    expect(event).toMatchObject({ properties: { data: schema } });
    expect(z.fromJSONSchema(event as never).safeParse(json?.examples.envelope?.value).error).toBeUndefined();
  }
});
