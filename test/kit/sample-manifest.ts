// The built-in sample manifest, as the server reads it.
import { readFileSync } from 'node:fs';
import type { BaseManifest, Deployment } from '../../src/upgrades/versions/deployment.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';

const file = new URL('../../src/upgrades/versions/sample-manifest.json', import.meta.url);

const versions = JSON.parse(readFileSync(file, 'utf8')) as Version[];

export const sampleManifest: BaseManifest = { source: 'built-in', versions, digest: 'sample' };

/** The oldest release, which a simulated deployment begins with. */
export const freshRelease = versions[0] as Version;

export const freshDeployment: Deployment = { release: freshRelease, patches: [] };

/** The versions that follow it. */
export const laterVersions: readonly Version[] = versions.slice(1);
