// The page at the address of the SOAP service.
import { describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { namespace, operationNames, startServer } from '../kit/server.ts';

const server = perTest(startServer);

describe('the page of the SOAP service', () => {
  const page = async (from = server) => (await from.get('/services', { accept: 'text/html' })).body;
  const textOf = (markup: string) =>
    markup
      .replace(/<\/?span[^>]*>/g, '')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&amp;', '&');
  const requestsIn = (markup: string) =>
    [...markup.matchAll(/data-request>(.*?)<\/pre>/gs)].map(([, text]) => textOf(text ?? ''));
  const commandsIn = (markup: string) =>
    [...markup.matchAll(/data-copy>(.*?)<\/pre>/gs)].map(([, text]) => textOf(text ?? ''));

  it('shows a working request for every operation', async () => {
    const requests = requestsIn(await page());
    expect(requests).toHaveLength(operationNames.length);
    for (const [index, payload] of requests.entries()) {
      const response = await server.http.inject({
        method: 'POST',
        url: '/services',
        payload,
        headers: { 'content-type': 'text/xml' },
      });
      expect([response.statusCode, payload]).toEqual([200, payload]);
      expect(response.body).toContain(`<${operationNames[index]}Response xmlns="${namespace}">`);
    }
  });

  it('shows a command that sends the request, with a token variable if a token is required', async () => {
    const markup = await page();
    const commands = commandsIn(markup);
    for (const [index, request] of requestsIn(markup).entries()) {
      expect(commands[index]).toContain(`-d '\n${request}'`);
      expect(commands[index]).toMatch(/^curl 'http:\/\/localhost:8080\/services' /);
    }
    expect(commands.join()).not.toContain('$TOKEN');
    const own = await startServer({ env: { REQUIRE_TOKENS: 'true' } });
    const guarded = commandsIn(await page(own)).filter((command) => command.includes('Bearer $TOKEN'));
    expect(guarded.join()).toContain('<GetFolders');
    expect(guarded.join()).not.toContain('<RequiresTokens');
  });

  it('marks the elements of the arguments for the script', async () => {
    const markup = await page();
    expect(markup).toContain('<span data-argument="FolderName">/</span>');
    expect(markup).toMatch(/<label for="([^"]+)">FolderName<\/label>\s*<input id="\1" name="FolderName"/);
    expect(markup.match(/<form data-try data-needs-script>/g)).toHaveLength(operationNames.length);
  });
});
