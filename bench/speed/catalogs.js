// Catalogs for bench/speed.js, as CATALOG_FILE has them: all public, so that nobody needs a token to see them whole.
import { sampleCatalog } from '../../dist/catalog/sample.js';

/** The built-in sample with its 12 services. */
export const sample = {
  folders: sampleCatalog.folders,
  services: sampleCatalog.services.map((service) => ({ ...service, access: 'public' })),
};

const types = ['MapServer', 'FeatureServer', 'ImageServer', 'GPServer'];
const number = (n) => String(n).padStart(5, '0');

export const folderNamed = (n) => `Folder${number(n)}`;

/** So many folders with as many services each; all folders take the same number of bytes. */
export function regular(folders, servicesEach) {
  const serviceOf = (folder, n) => ({
    folderName: folderNamed(folder),
    serviceName: `Service${number(n)}`,
    type: types[n % types.length],
    capabilities: 'Map,Query,Data',
    description: `What service ${number(n)} of folder ${number(folder)} shows.`,
  });
  const count = (length, make) => Array.from({ length }, (_, n) => make(n));
  return {
    folders: count(folders, (n) => ({ folderName: folderNamed(n), description: `Folder ${number(n)}.` })),
    services: count(folders, (folder) => count(servicesEach, (n) => serviceOf(folder, n))).flat(),
  };
}
