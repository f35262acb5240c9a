// Helpers for the tests of the SOAP endpoint: envelopes, calls and posting them.
import { type Server, namespace } from '../kit/server.ts';

export const soap11 = 'http://schemas.xmlsoap.org/soap/envelope/';
export const soap12 = 'http://www.w3.org/2003/05/soap-envelope';
export const operations = ['GetMessageVersion', 'GetMessageFormats', 'GetTokenServiceURL', 'RequiresTokens'];
export const guardedOperations = ['GetFolders', 'GetServiceDescriptions', 'GetServiceDescriptionsEx'];

/** Takes a function because the server is started before the tests, not when the file is loaded. */
export const postTo =
  (server: () => Server) =>
  (payload: string | Buffer, headers: Record<string, string | undefined> = {}) => {
    const given = Object.entries({ 'content-type': 'text/xml; charset=utf-8', ...headers }).filter(
      ([, value]) => value,
    );
    return server().http.inject({
      method: 'POST',
      url: '/services',
      headers: Object.fromEntries(given) as Record<string, string>,
      payload,
    });
  };

export const envelope = (body: string, version = soap11) =>
  `<e:Envelope xmlns:e="${version}"><e:Body>${body}</e:Body></e:Envelope>`;
export const call = (name: string, inside = '') => `<${name} xmlns="${namespace}">${inside}</${name}>`;
export const namesIn = (body: string) => [...body.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name);
