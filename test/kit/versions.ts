// Versions of a manifest that follow the built-in release 10.9.1.1234, without containers.

export const patchOf = (id: string, build = '1300', previousBuild = '1234') => ({
  id,
  type: 'patch',
  version: '10.9.1',
  build,
  releaseBuild: '1234',
  previousBuild,
});

export const releaseOf = (id: string, build = '2000', previousReleaseBuild = '1234') => ({
  id,
  type: 'release',
  version: '10.9.2',
  build,
  previousReleaseBuild,
});
