// Catalogs for bench/speed.js in the format of CATALOG_FILE. Services are public by default, so that requests need
// no token.
const types = ['MapServer', 'FeatureServer', 'ImageServer', 'GPServer'];
const number = (n) => String(n).padStart(5, '0');

export const folderNamed = (n) => `Folder${number(n)}`;

/** All numbers have the same width, so that the answers for all folders have the same length. */
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
