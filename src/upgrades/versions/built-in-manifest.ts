// The built-in version manifest: 10.9.1 with two patches, 11.0.0 with its patches, 11.1.0 and 11.2.0.
import { type Container, type Version, formatVersion } from './manifest.ts';

/** The containers of each component, which the names begin with. */
const components = {
  ADMIN: ['API', 'TOOLS', 'UPGRADER'],
  CATALOG: ['SERVER', 'INDEXER'],
  CONFIG: ['FACTORY', 'STORE'],
  FEATURE: ['SERVER', 'SYNC'],
  GATEWAY: ['INGRESS', 'PROXY'],
  GEOCODE: ['SERVER'],
  GEOMETRY: ['SERVER'],
  IMAGE: ['SERVER', 'TILES'],
  JOBS: ['QUEUE', 'WORKER'],
  LOGGING: ['COLLECTOR', 'STORE'],
  MAP: ['SERVER', 'TILES'],
  METRICS: ['DASHBOARD', 'STORE'],
  NETWORK: ['ROUTER', 'SOLVER'],
  PORTAL: ['API', 'APPS', 'HELP', 'HOME', 'SHARING'],
  PRINT: ['SERVER'],
  PUBLISH: ['SERVER', 'VALIDATOR'],
  SEARCH: ['INDEX'],
  SECURITY: ['DIRECTORY', 'TOKENS'],
  STORE: ['OBJECT', 'QUEUE', 'RELATIONAL', 'SPATIOTEMPORAL'],
  SYNC: ['SERVER'],
  TOOLS: ['GEOPROCESSING', 'RASTER'],
  UTILITY: ['BACKUP', 'RECOVERY'],
  VIEWER: ['SCENE'],
} as const;

function inComponent(...names: readonly (keyof typeof components)[]): string[] {
  return names.flatMap((component) => components[component].map((part) => `${component}_${part}`));
}

const core = inComponent(...(Object.keys(components) as (keyof typeof components)[]));
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

type Links = Pick<Version, 'type' | 'previousReleaseBuild' | 'releaseBuild' | 'previousBuild'> & {
  readonly previousVersion: string;
};

type Contents = Partial<Pick<Version, 'isMandatoryUpdate' | 'newLicensesRequired'>> & {
  readonly containers: readonly string[];
  readonly newContainers?: readonly string[];
};

function createVersion(
  facts: Facts,
  { type, ...previous }: Links,
  { containers, newContainers = [], isMandatoryUpdate = false, newLicensesRequired = false }: Contents,
) {
  const label = formatVersion(facts);
  return {
    type,
    description: facts.name,
    ...previous,
    ...facts,
    isMandatoryUpdate,
    newLicensesRequired,
    releaseNotes: '',
    url: `https://example.com/release-notes/${facts.version}`,
    containers: createContainers(containers, label),
    newContainers: createContainers(newContainers, label),
    userForm: [],
  };
}

const day = (year: number, month: number, date: number) => Date.UTC(year, month - 1, date);
export const freshRelease: Version = createVersion(
  {
    id: 'rel_10092021_1234',
    version: '10.9.1',
    build: '1234',
    name: 'Product 10.9.1',
    released: day(2021, 12, 9),
  },
  { type: 'release', previousVersion: '10.9.0', previousReleaseBuild: '1032' },
  { containers: core },
);

export const builtInManifest: readonly Version[] = [
  createVersion(
    {
      id: 'pat_17022022_1250',
      version: '10.9.1',
      build: '1250',
      name: 'Product 10.9.1 Security Update',
      released: day(2022, 2, 17),
    },
    { type: 'patch', previousVersion: '10.9.1', releaseBuild: '1234', previousBuild: '1234' },
    { containers: inComponent('GATEWAY', 'SECURITY') },
  ),
  createVersion(
    {
      id: 'pat_28042022_1260',
      version: '10.9.1',
      build: '1260',
      name: 'Product 10.9.1 Portal Update',
      released: day(2022, 4, 28),
    },
    { type: 'patch', previousVersion: '10.9.1', releaseBuild: '1234', previousBuild: '1250' },
    { containers: inComponent('PORTAL') },
  ),
  createVersion(
    {
      id: 'rel_14072022_2632',
      version: '11.0.0',
      build: '2632',
      name: 'Product 11.0',
      released: day(2022, 7, 14),
    },
    { type: 'release', previousVersion: '10.9.1', previousReleaseBuild: '1234' },
    { containers: core, newContainers: since110, newLicensesRequired: true },
  ),
  createVersion(
    {
      id: 'pat_22092022_2650',
      version: '11.0.0',
      build: '2650',
      name: 'Product 11.0 Base Image Update',
      released: day(2022, 9, 22),
    },
    { type: 'patch', previousVersion: '11.0.0', releaseBuild: '2632', previousBuild: '2632' },
    { containers: inComponent('FEATURE', 'IMAGE', 'MAP') },
  ),
  createVersion(
    {
      id: 'pat_08122022_2670',
      version: '11.0.0',
      build: '2670',
      name: 'Product 11.0 Upgrade Preparation Update',
      released: day(2022, 12, 8),
    },
    { type: 'patch', previousVersion: '11.0.0', releaseBuild: '2632', previousBuild: '2650' },
    { containers: inComponent('ADMIN'), isMandatoryUpdate: true },
  ),
  createVersion(
    {
      id: 'rel_18052023_3923',
      version: '11.1.0',
      build: '3923',
      name: 'Product 11.1',
      released: day(2023, 5, 18),
    },
    { type: 'release', previousVersion: '11.0.0', previousReleaseBuild: '2632' },
    { containers: [...core, ...since110], newLicensesRequired: true },
  ),
  createVersion(
    {
      id: 'rel_07122023_5207',
      version: '11.2.0',
      build: '5207',
      name: 'Product 11.2',
      released: day(2023, 12, 7),
    },
    { type: 'release', previousVersion: '11.1.0', previousReleaseBuild: '3923' },
    { containers: [...core, ...since110], newContainers: since112, newLicensesRequired: true },
  ),
];

export const builtInNames: ReadonlySet<string> = new Set([...core, ...since110, ...since112]);
