// `steward import-catalog`: reads the catalog of another server over SOAP and returns the text of a catalog file.
import { readCatalogFile } from '../app/catalog-file.ts';
import {
  type ServiceAccess,
  addressOfService,
  bytesOfService,
  findExceededLimit,
  rootFolder,
} from '../catalog/catalog.ts';
import { readConfig } from '../config/config.ts';
import { formatProblem } from '../lib/errors.ts';
import { CatalogClient, type ServiceDescription } from './catalog-client.ts';
import { CommandError, escapeHidden } from './command-error.ts';
import { answerLimits, readAddress, withRemote } from './remote.ts';

type ImportCatalogOptions = {
  readonly address: string;
  readonly token: string | undefined;
  /** Who sees the imported services. SOAP does not say it. */
  readonly access: ServiceAccess;
  /** MAX_SERVICES limits the catalog, as in a server. */
  readonly env?: Readonly<Record<string, string | undefined>>;
};

export async function importCatalog(
  { address, token, access, env = {} }: ImportCatalogOptions,
  limits = answerLimits,
): Promise<string> {
  const url = readAddress(address);
  const config = readConfig({ MAX_SERVICES: env.MAX_SERVICES });
  const file = await withRemote(async (send) => {
    const client = await CatalogClient.connect(send, url, token);
    const folderNames = await client.folders();
    const services: object[] = [];
    let bytes = 0;
    for (const folderName of ['', ...folderNames]) {
      for (const description of await client.services(folderName)) {
        const service = { ...toService(description, folderName || rootFolder, client.ownAddress), access };
        services.push(service);
        bytes += bytesOfService(service);
      }
      const size = { folders: folderNames.length, services: services.length, bytes };
      const excess = findExceededLimit(config, size);
      if (excess !== undefined) throw new CommandError(`The catalog is too large: ${excess}`);
    }
    return { folders: folderNames.map((folderName) => ({ folderName, description: '' })), services };
  }, limits);
  const text = `${escapeHidden(JSON.stringify(file, null, 2))}\n`;
  const result = readCatalogFile(text);
  if ('problems' in result)
    throw new CommandError(
      'The catalog has entries that Steward does not accept:',
      result.problems.map(formatProblem),
    );
  return text;
}

function toService(described: ServiceDescription, folderName: string, ownAddress: string) {
  const { name, type, url, parentType, capabilities, description } = described;
  const prefix = `${folderName}/`;
  const serviceName = folderName !== rootFolder && name.startsWith(prefix) ? name.slice(prefix.length) : name;
  const derived = addressOfService({ folderName, serviceName, type, url: null }, ownAddress);
  return {
    folderName,
    serviceName,
    type,
    description,
    capabilities,
    parentType,
    url: url === '' || url === derived ? null : url,
  };
}
