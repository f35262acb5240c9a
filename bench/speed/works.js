// The requests that bench/speed.js measures, each with the settings of its server. `warmUp` and `slice`: how many
// requests, where the usual number would take too long.
import { Buffer } from 'node:buffer';
import { URLSearchParams } from 'node:url';
import { folderNamed, regular } from './catalogs.js';
import { signIn } from './processes.js';

const namespace = 'http://www.example.com/schemas/Product/10.0';

/** The npm package `soap` sends these headers. */
const soapHeaders = {
  accept: 'text/html,application/xhtml+xml,application/xml,text/xml;q=0.9,*/*;q=0.8',
  'content-type': 'text/xml; charset=utf-8',
  'user-agent': 'bench/1.0',
  'accept-encoding': 'none',
  'accept-charset': 'utf-8',
  soapaction: '""',
  connection: 'keep-alive',
};

export const soap = (operation, content = '', headers = {}) => ({
  method: 'POST',
  path: '/services',
  headers: { ...soapHeaders, ...headers },
  body:
    '<?xml version="1.0" encoding="utf-8"?>' +
    '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"' +
    ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"  xmlns:tns="${namespace}"><soap:Body>` +
    `<${operation} xmlns="${namespace}">${content}</${operation}></soap:Body></soap:Envelope>`,
});

export const askFolder = (name, headers) =>
  soap('GetServiceDescriptionsEx', `<FolderName>${name}</FolderName>`, headers);

/** curl sends these headers. */
const plainHeaders = { 'user-agent': 'bench/1.0', accept: '*/*' };

const bearer = (token) => ({ authorization: `Bearer ${token}` });

const form = (path, fields) => ({
  method: 'POST',
  path,
  headers: { ...plainHeaders, 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
});

const boundary = 'boundary-of-the-bench';

function multipart(path, parts) {
  const pieces = parts.flatMap(({ name, filename, content }) => [
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"`,
    filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/octet-stream`,
    '\r\n\r\n',
    content,
    '\r\n',
  ]);
  return {
    method: 'POST',
    path,
    headers: { ...plainHeaders, 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece))),
  };
}

/** A job for a patch has 13 messages, and 3 more for each container. */
const patchOf1000Messages = {
  id: 'pat_bench',
  type: 'patch',
  version: '10.9.1',
  build: '1300',
  releaseBuild: '1234',
  previousBuild: '1234',
  containers: Array.from({ length: 329 }, (_, n) => ({ name: `BENCH_${n}`, image: `bench_${n}:1300` })),
};

async function upgradeOnce({ ask }, token) {
  const read = async (asked) => JSON.parse((await ask(asked)).bytes);
  const upgrades = '/admin/system/upgrades';
  const manifestFile = JSON.stringify([patchOf1000Messages]);
  await ask(form(`${upgrades}/importManifest`, { token, manifestFile }));
  await ask(form(`${upgrades}/upgrade`, { token, versionManifest: '{"id":"pat_bench"}' }));
  for (;;) {
    const { status, messageCount } = await read({
      path: `${upgrades}?after=999&wait=60`,
      headers: bearer(token),
    });
    if (status.state === 'in_progress') continue;
    if (status.state !== 'success' || messageCount !== 1000)
      throw new Error(`the job ended as ${status.state} with ${messageCount} messages`);
    return;
  }
}

const release = '{"id":"rel_14072022_2632"}';

/** The fixed seed gives the same bytes in every run. */
function makeNoise() {
  const noise = Buffer.alloc(5 * 1024 ** 2);
  let state = 1;
  for (let at = 0; at < noise.length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    noise[at] = state >>> 24;
  }
  return noise;
}

/** `body` names the reader in bare.js. */
export const works = [
  {
    name: 'GetMessageVersion',
    body: 'xml',
    connections: 20,
    catalog: regular(3, 4),
    requestsTo: () => [soap('GetMessageVersion')],
  },
  {
    name: 'GetServiceDescriptions, 12 services',
    body: 'xml',
    connections: 20,
    catalog: regular(3, 4),
    requestsTo: () => [soap('GetServiceDescriptions')],
  },
  {
    name: 'GetServiceDescriptions, 10,000 services',
    slice: 100,
    body: 'xml',
    connections: 4,
    catalog: regular(100, 100),
    requestsTo: () => [soap('GetServiceDescriptions')],
  },
  {
    name: 'GetServiceDescriptionsEx with a token, 100 folders',
    body: 'xml',
    connections: 20,
    catalog: regular(100, 10),
    async requestsTo(server) {
      const headers = bearer(await signIn(server));
      return Array.from({ length: 100 }, (_, n) => askFolder(folderNamed(n), headers));
    },
  },
  {
    name: 'webhook settings, POST with token',
    body: 'form',
    connections: 20,
    async requestsTo(server) {
      const token = await signIn(server);
      const policy = { notificationAttempts: 4, notificationTimeOutInSeconds: 20 };
      const rest = { notificationElapsedTimeInSeconds: 30, daysInPast: 7, numberOfFailures: 10 };
      return [form('/admin/services/webhooks/settings', { token, ...policy, ...rest })];
    },
  },
  {
    name: 'upgrades status with 1,000 messages',
    body: 'nothing',
    connections: 20,
    env: { UPGRADE_STEP_MS: '0' },
    async requestsTo(server) {
      const token = await signIn(server);
      await upgradeOnce(server, token);
      const headers = { ...plainHeaders, ...bearer(token) };
      return [{ method: 'GET', path: '/admin/system/upgrades', headers }];
    },
  },
  {
    name: 'upgrade, multipart with a 5 MiB file, refused at preflight',
    warmUp: 200,
    slice: 30,
    body: 'multipart',
    connections: 4,
    status: 400,
    async requestsTo(server) {
      const token = await signIn(server);
      return [
        multipart('/admin/system/upgrades/upgrade', [
          { name: 'token', content: token },
          { name: 'versionManifest', content: release },
          { name: 'upgradeSettings', content: '{}' },
          { name: 'licenseFile', filename: 'license.json', content: makeNoise() },
        ]),
      ];
    },
  },
];
