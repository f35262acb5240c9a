// Attacks of an administrator, or of the author of a manifest: large manifests and settings.
import { Blob } from 'node:buffer';
import { FormData, fetch } from 'undici';
import { countStatuses } from './sign-in.js';

const upgrades = '/admin/system/upgrades';
const megabytes = 1024 * 1024;

function fill(start, entry, end, bytes) {
  const count = Math.floor((bytes - start.length - end.length) / (entry.length + 1));
  return `${start}${Array(count).fill(entry).join(',')}${end}`;
}

function post(baseUrl, token, path, fields) {
  const body = new FormData();
  body.set('token', token);
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  return fetch(`${baseUrl}${path}`, { method: 'POST', body });
}

const importManifest = ({ baseUrl, token }, text) =>
  post(baseUrl, token, `${upgrades}/importManifest`, { manifestFile: new Blob([text]) });

const release = (index) => ({
  id: `rel_${index}`,
  type: 'release',
  version: `${11 + index}.0.0`,
  build: String(10_001 + index),
  previousVersion: index === 0 ? '10.9.1' : `${10 + index}.0.0`,
  previousReleaseBuild: index === 0 ? '1234' : String(10_000 + index),
  containers: [{ name: 'A_B', image: `a:${index}` }],
});

export const manifestAttacks = {
  'manifests of 10 MiB of wrong entries, 5': async (target) => {
    const version = { id: 'a', type: 'release', version: '1.0.0', build: '1', previousReleaseBuild: '1' };
    const start = `[${JSON.stringify(version).slice(0, -1)},"containers":[`;
    const size = 10 * megabytes - 4096;
    const texts = [
      fill(start, '0', ']}]', size),
      fill('[[', '0', ']]', size),
      fill('[[', '{}', ']]', size),
      fill('[', '{}', ']', size),
      fill(start.replace('containers', 'userForm'), '{"groupInputs":[0]}', ']}]', size),
    ];
    const responses = [];
    for (const text of texts) responses.push(await importManifest(target, text));
    return countStatuses(responses);
  },

  'plans with 1 MiB of wrong settings, 10': async ({ baseUrl, token }) => {
    const fields = {
      versionManifest: '{"id":"rel_14072022_2632"}',
      upgradeSettings: fill('{"userInputs":[', '0', ']}', megabytes - 4096),
    };
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => post(baseUrl, token, `${upgrades}/plan`, fields)),
    );
    return countStatuses(responses);
  },

  'available with 500 releases, 20': async (target) => {
    const { baseUrl, token } = target;
    const chain = JSON.stringify(Array.from({ length: 500 }, (_, index) => release(index)));
    const responses = [await importManifest(target, chain)];
    for (let count = 0; count < 20; count += 1)
      responses.push(await fetch(`${baseUrl}${upgrades}/available?token=${token}`));
    return countStatuses(responses);
  },
};
