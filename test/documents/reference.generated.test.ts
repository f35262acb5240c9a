// Tests that the generated pages of docs/reference are up to date; `npm run docs` writes them.
import { expect, it } from 'vitest';
import { apiPage } from './reference/api.ts';
import { configurationPage } from './reference/configuration.ts';
import { errorsPage } from './reference/errors.ts';
import { metricsPage } from './reference/metrics.ts';
import { readOpenApi } from './reference/openapi.ts';
import { soapPage } from './reference/soap.ts';

it.each([
  ['api', apiPage],
  ['configuration', configurationPage],
  ['errors-and-codes', errorsPage],
  ['metrics', metricsPage],
  ['soap', soapPage],
])('docs/reference/%s.md is up to date', async (name, render) => {
  await expect(await render()).toMatchFileSnapshot(`../../docs/reference/${name}.md`);
});

it('docs/reference/openapi.json is up to date', async () => {
  const document = JSON.stringify(await readOpenApi(), null, 2);
  await expect(`${document}\n`).toMatchFileSnapshot('../../docs/reference/openapi.json');
});
