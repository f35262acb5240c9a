// Calls the server with two independent SOAP libraries, which read the WSDL over HTTP.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import * as soap from 'soap';
import type { soap as StrongSoap } from 'strong-soap';
import { beforeAll, describe, expect, it } from 'vitest';
import { extraPackages } from '../kit/package.ts';
import { type Server, operationNames as operations, startServer } from '../kit/server.ts';
import { createCallJournal } from './journal.ts';

type Described = { Name: string; Type: string; Description: string };
type ManyDescribed = { ServiceDescriptions: { ServiceDescription: Described[] } };

type Client = {
  /** The services, ports and operations that the library found in the WSDL. */
  describe: () => Record<string, Record<string, object>>;
  call: (operation: string, fields?: Record<string, string>) => Promise<unknown>;
};

/** Opens a client for the address in the WSDL, or for the given endpoint. */
type Open = (wsdl: string, endpoint?: string) => Promise<Client>;

function withSoap(forceSoap12Headers: boolean): Open {
  return async (wsdl, endpoint) => {
    const client = await soap.createClientAsync(wsdl, { forceSoap12Headers, disableCache: true }, endpoint);
    return {
      describe: () => client.describe() as ReturnType<Client['describe']>,
      async call(operation, fields = {}) {
        const method = client[`${operation}Async`] as soap.SoapMethodAsync;
        const answer: unknown[] = await method(fields);
        return answer[0];
      },
    };
  };
}

function withStrongSoap(packages: string, forceSoapVersion: '1.1' | '1.2'): Open {
  const { soap: strongSoap } = createRequire(join(packages, 'strong-soap/'))('strong-soap') as {
    soap: typeof StrongSoap;
  };
  return async (wsdl, endpoint) => {
    const client = await new Promise<StrongSoap.Client>((resolve, reject) => {
      strongSoap.createClient(wsdl, { forceSoapVersion, WSDL_CACHE: {} }, (error, opened) => {
        if (error) reject(error);
        else resolve(opened);
      });
    });
    if (endpoint !== undefined) client.setEndpoint(endpoint);
    return {
      describe: () => client.describe(),
      async call(operation, fields = {}) {
        const method = client['Catalog']?.['ServiceCatalogPort']?.[operation];
        if (!method) throw new Error(`The WSDL has no operation ${operation}.`);
        return (await method(fields)).result;
      },
    };
  };
}

const toolkits: [name: string, open: Open, mediaType: string][] = [
  ['soap, SOAP 1.1', withSoap(false), 'text/xml'],
  ['soap, SOAP 1.2', withSoap(true), 'application/soap+xml'],
];
if (extraPackages !== undefined)
  toolkits.push(
    ['strong-soap, SOAP 1.1', withStrongSoap(extraPackages, '1.1'), 'text/xml'],
    ['strong-soap, SOAP 1.2', withStrongSoap(extraPackages, '1.2'), 'application/soap+xml'],
  );

describe.each(['plain', 'family'])('PROFILE=%s', (PROFILE) => {
  let server: Server;
  let address: string;
  let wsdl: string;
  const { extend, expectCalls } = createCallJournal();

  beforeAll(async () => {
    server = await startServer({ env: { PUBLIC_URL: '', PROFILE }, extend });
    address = await server.listen();
    wsdl = `${address}/services?wsdl`;
  });

  describe.each(toolkits)('%s', (_name, open, mediaType) => {
    let client: Client;
    beforeAll(async () => {
      client = await open(wsdl);
    });

    const listServices = async (operation: string, fields?: Record<string, string>, from = client) => {
      const result = (await from.call(operation, fields)) as ManyDescribed;
      return result.ServiceDescriptions.ServiceDescription;
    };
    const namesOf = (services: Described[]) => services.map(({ Name, Type }) => `${Name}.${Type}`);

    it('finds one service with one port and the operations in the WSDL', () => {
      const description = client.describe();
      expect(Object.keys(description)).toEqual(['Catalog']);
      expect(Object.keys(description['Catalog'] ?? {})).toEqual(['ServiceCatalogPort']);
      expect(Object.keys(description['Catalog']?.['ServiceCatalogPort'] ?? {})).toEqual(operations);
    });

    it('sends requests of its SOAP version', async () => {
      const contentTypes: (string | undefined)[] = [];
      server.http.server.once('request', ({ headers }) => void contentTypes.push(headers['content-type']));
      await client.call('RequiresTokens');
      expect(contentTypes).toEqual([expect.stringContaining(`${mediaType};`)]);
    });

    it('reads message version, message formats, token service address and token requirement', async () => {
      const port = new URL(address).port;
      expect(await client.call('GetMessageVersion')).toEqual({ MessageVersion: 'svcProductVersion10' });
      expect(await client.call('GetMessageFormats')).toEqual({
        MessageFormats: 'svcServiceCatalogMessageFormatSoap',
      });
      expect(await client.call('GetTokenServiceURL')).toEqual({
        TokenServiceURL: `http://localhost:${port}/tokens/generateToken`,
      });
      expect(await client.call('RequiresTokens')).toEqual({ Result: false });
    });

    it('lists the folders that an anonymous caller may see', async () => {
      expect(await client.call('GetFolders')).toEqual({ FolderNames: { String: ['Maps', 'Tools'] } });
    });

    it('lists the public services of all folders, the root first', async () => {
      expect(namesOf(await listServices('GetServiceDescriptions'))).toEqual([
        'Geometry.GeometryServer',
        'Places.GeocodeServer',
        'World.MapServer',
        'Maps/Boundaries.FeatureServer',
        'Maps/Boundaries.MapServer',
        'Maps/Elevation.ImageServer',
        'Maps/Roads.MapServer',
        'Tools/Printing.GPServer',
        'Tools/Routing.NAServer',
      ]);
    });

    it('reads every field of a service of one folder', async () => {
      const services = await listServices('GetServiceDescriptionsEx', { FolderName: 'Maps' });
      expect(services).toHaveLength(4);
      expect(services[0]).toEqual({
        Name: 'Maps/Boundaries',
        Type: 'FeatureServer',
        Url: `http://localhost:${new URL(address).port}/services/Maps/Boundaries/FeatureServer`,
        ParentType: 'MapServer',
        Capabilities: 'Query,Sync',
        Description: 'Boundaries as features.',
      });
    });

    it('reads the services of the root with an empty folder name', async () => {
      const services = await listServices('GetServiceDescriptionsEx', { FolderName: '' });
      expect(namesOf(services)).toEqual([
        'Geometry.GeometryServer',
        'Places.GeocodeServer',
        'World.MapServer',
      ]);
    });

    it('reports an unknown folder as an error that names it', async () => {
      await expect(
        client.call('GetServiceDescriptionsEx', { FolderName: 'Nowhere & <Never>' }),
      ).rejects.toThrow('There is no folder named Nowhere & <Never>.');
    });

    it('sees everything with a token of an administrator in the endpoint', async () => {
      const token = server.token('administrator');
      const insider = await open(wsdl, `${address}/services?token=${token}`);
      expect(await listServices('GetServiceDescriptions', {}, insider)).toHaveLength(12);
      expect(await insider.call('GetFolders')).toEqual({
        FolderNames: { String: ['Maps', 'Operations', 'Tools'] },
      });
    });

    it('reports a bad token as an error', async () => {
      const stranger = await open(wsdl, `${address}/services?token=made-up`);
      await expect(stranger.call('GetServiceDescriptions')).rejects.toThrow(/token/i);
    });

    it('finds each of these calls in the journal, with the reason of the fault', () => {
      expectCalls();
    });
  });
});
