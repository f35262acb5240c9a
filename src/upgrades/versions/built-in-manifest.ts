// The built-in version manifest: 10.9.1 with two patches, 11.0.0 with its patches, 11.1.0 and 11.2.0.
import type { Container, Version } from './manifest.ts';

const core = [
  'ADMIN_API',
  'ADMIN_TOOLS',
  'ADMIN_UPGRADER',
  'CATALOG_SERVER',
  'CATALOG_INDEXER',
  'CONFIG_FACTORY',
  'CONFIG_STORE',
  'FEATURE_SERVER',
  'FEATURE_SYNC',
  'GATEWAY_INGRESS',
  'GATEWAY_PROXY',
  'GEOCODE_SERVER',
  'GEOMETRY_SERVER',
  'IMAGE_SERVER',
  'IMAGE_TILES',
  'JOBS_QUEUE',
  'JOBS_WORKER',
  'LOGGING_COLLECTOR',
  'LOGGING_STORE',
  'MAP_SERVER',
  'MAP_TILES',
  'METRICS_DASHBOARD',
  'METRICS_STORE',
  'NETWORK_ROUTER',
  'NETWORK_SOLVER',
  'PORTAL_API',
  'PORTAL_APPS',
  'PORTAL_HELP',
  'PORTAL_HOME',
  'PORTAL_SHARING',
  'PRINT_SERVER',
  'PUBLISH_SERVER',
  'PUBLISH_VALIDATOR',
  'SEARCH_INDEX',
  'SECURITY_DIRECTORY',
  'SECURITY_TOKENS',
  'STORE_OBJECT',
  'STORE_QUEUE',
  'STORE_RELATIONAL',
  'STORE_SPATIOTEMPORAL',
  'SYNC_SERVER',
  'TOOLS_GEOPROCESSING',
  'TOOLS_RASTER',
  'UTILITY_BACKUP',
  'UTILITY_RECOVERY',
  'VIEWER_SCENE',
];
const since110 = ['NOTEBOOK_HANDLER', 'NOTEBOOK_SERVER'];
const since112 = ['VIDEO_SERVER'];

function createContainers(names: readonly string[], label: string): Container[] {
  return names.map((name) => ({
    name,
    image: `${name.toLowerCase().replaceAll('_', '-')}:${label}`,
    checksum: 'N/A',
  }));
}

type Facts = { id: string; version: string; build: string; name: string; released: number };

type VersionWithNotes = Version & {
  readonly description: string;
  readonly previousVersion: string;
  readonly releaseNotes: string;
  readonly url: string;
};

function release(
  facts: Facts,
  follows: { version: string; build: string },
  names: readonly string[],
  newNames: readonly string[] = [],
  newLicensesRequired = true,
): VersionWithNotes {
  const label = `${facts.version}.${facts.build}`;
  return {
    type: 'release',
    description: facts.name,
    previousVersion: follows.version,
    previousReleaseBuild: follows.build,
    ...facts,
    isMandatoryUpdate: false,
    newLicensesRequired,
    releaseNotes: '',
    url: `https://example.com/release-notes/${facts.version}`,
    containers: createContainers(names, label),
    newContainers: createContainers(newNames, label),
    userForm: [],
  };
}

function patch(
  facts: Facts,
  of: string,
  follows: string,
  names: readonly string[],
  isMandatoryUpdate = false,
): VersionWithNotes {
  return {
    type: 'patch',
    description: facts.name,
    previousVersion: facts.version,
    releaseBuild: of,
    previousBuild: follows,
    ...facts,
    isMandatoryUpdate,
    newLicensesRequired: false,
    releaseNotes: '',
    url: `https://example.com/release-notes/${facts.version}`,
    containers: createContainers(names, `${facts.version}.${facts.build}`),
    newContainers: [],
    userForm: [],
  };
}

const day = (year: number, month: number, date: number) => Date.UTC(year, month - 1, date);
const inComponent = (...components: string[]) =>
  core.filter((name) => components.includes(name.split('_')[0] ?? ''));

export const freshRelease: Version = release(
  {
    id: 'rel_10092021_1234',
    version: '10.9.1',
    build: '1234',
    name: 'Product 10.9.1',
    released: day(2021, 12, 9),
  },
  { version: '10.9.0', build: '1032' },
  core,
  [],
  false,
);

export const builtInManifest: readonly Version[] = [
  patch(
    {
      id: 'pat_17022022_1250',
      version: '10.9.1',
      build: '1250',
      name: 'Product 10.9.1 Security Update',
      released: day(2022, 2, 17),
    },
    '1234',
    '1234',
    inComponent('SECURITY', 'GATEWAY'),
  ),
  patch(
    {
      id: 'pat_28042022_1260',
      version: '10.9.1',
      build: '1260',
      name: 'Product 10.9.1 Portal Update',
      released: day(2022, 4, 28),
    },
    '1234',
    '1250',
    inComponent('PORTAL'),
  ),
  release(
    {
      id: 'rel_14072022_2632',
      version: '11.0.0',
      build: '2632',
      name: 'Product 11.0',
      released: day(2022, 7, 14),
    },
    { version: '10.9.1', build: '1234' },
    core,
    since110,
  ),
  patch(
    {
      id: 'pat_22092022_2650',
      version: '11.0.0',
      build: '2650',
      name: 'Product 11.0 Base Image Update',
      released: day(2022, 9, 22),
    },
    '2632',
    '2632',
    inComponent('MAP', 'FEATURE', 'IMAGE'),
  ),
  patch(
    {
      id: 'pat_08122022_2670',
      version: '11.0.0',
      build: '2670',
      name: 'Product 11.0 Upgrade Preparation Update',
      released: day(2022, 12, 8),
    },
    '2632',
    '2650',
    inComponent('ADMIN'),
    true,
  ),
  release(
    {
      id: 'rel_18052023_3923',
      version: '11.1.0',
      build: '3923',
      name: 'Product 11.1',
      released: day(2023, 5, 18),
    },
    { version: '11.0.0', build: '2632' },
    [...core, ...since110],
  ),
  release(
    {
      id: 'rel_07122023_5207',
      version: '11.2.0',
      build: '5207',
      name: 'Product 11.2',
      released: day(2023, 12, 7),
    },
    { version: '11.1.0', build: '3923' },
    [...core, ...since110],
    since112,
  ),
];

export const builtInNames: ReadonlySet<string> = new Set([...core, ...since110, ...since112]);
