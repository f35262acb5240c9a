// The server behaves as the OpenAPI document describes.
import { beforeAll, describe, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { type Document, address, createDocumentReader } from './openapi-kit.ts';

const server = perFile(startServer);
let api: Document;
beforeAll(async () => {
  api = (await server.get(address)).json();
});

const { listOperations, findOperation, formSchema } = createDocumentReader(() => api);

describe('the server behaves as the document describes', () => {
  const posts = () => listOperations().filter(({ path, method }) => method === 'post' && !path.includes('{'));
  const postInvalid = async (path: string, fields: Record<string, string>) => {
    const response = await server.post(path, fields, {
      authorization: `Bearer ${server.token('administrator')}`,
    });
    const { error } = response.json<{ error: { code: number; details: string[] } }>();
    expect(Object.keys(findOperation(path, 'post').responses)).toContain(String(response.statusCode));
    return { status: response.statusCode, details: error.details };
  };

  it('if a required field is missing', async () => {
    const withRequired = posts().filter(({ path }) => formSchema(path).required);
    expect(withRequired.length).toBeGreaterThan(8);
    for (const { path } of withRequired) {
      const { status, details } = await postInvalid(path, {});
      expect(status, path).toBe(400);
      const missing = details
        .filter((detail) => detail.endsWith(': is required.'))
        .map((detail) => detail.split(':')[0]);
      expect(missing, path).toEqual(formSchema(path).required);
    }
  });

  it('if too many passwords arrive at once', async () => {
    const path = '/admin/security/users/add';
    const add = (_: unknown, index: number) =>
      server.post(path, {
        username: `u${index}`,
        password: 'battery staple',
        role: 'member',
        token: server.token('administrator'),
      });
    const answers = await Promise.all(Array.from({ length: 24 }, add));
    const statuses = new Set(answers.map(({ statusCode }) => String(statusCode)));
    expect(statuses).toEqual(new Set(['200', '429']));
    expect(Object.keys(findOperation(path, 'post').responses)).toEqual(expect.arrayContaining([...statuses]));
    expect(answers.at(-1)?.json()).toMatchObject({
      error: { message: 'Too many passwords are being processed.' },
    });
    expect(Number(answers.at(-1)?.headers['retry-after'])).toBeGreaterThan(0);
  });

  /** The requests have no fields. */
  const statusOfMember = (path: string, { requestBody }: { requestBody?: { required?: boolean } }) => {
    if (path.includes('{')) return 404;
    return requestBody?.required ? 400 : 200;
  };

  it('if an id is unknown, a token is missing or a role is too low', async () => {
    const token = server.token('member');
    for (const { path, method, entry } of listOperations()) {
      const url = path.replace(/\{\w+\}/g, 'nothing');
      const send = (headers: Record<string, string>) =>
        method === 'get' ? server.get(url, headers) : server.post(url, {}, headers);
      if (['anyone', 'optional'].includes(entry['x-access'])) continue;
      expect((await send({})).statusCode, `${method} ${path}`).toBe(401);
      const asMember = (await send({ authorization: `Bearer ${token}` })).statusCode;
      expect(asMember, `${method} ${path}`).toBe(
        entry['x-access'] === 'member' ? statusOfMember(path, entry) : 403,
      );
      expect(Object.keys(entry.responses)).toContain(String(asMember));
    }
  });
});
