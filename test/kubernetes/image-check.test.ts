// Images are looked up in a real registry, Debian's docker-registry: without authentication, with passwords, and
// with tokens.
import { execFileSync, spawnSync } from 'node:child_process';
import { createPrivateKey, createSign, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseRegistryReference } from '../../src/upgrades/executors/images/image.ts';
import { parseRegistryAuth } from '../../src/upgrades/executors/images/registry.ts';
import {
  credentials,
  isInstalled,
  startDockerRegistry,
  tokenIssuer,
  tokenService,
} from './docker-registry.ts';
import { check, createChecker, encode, nothing, writeAuthFile } from './image-check-kit.ts';

const otherDigest = `sha256:${'0'.repeat(64)}`;

describe.skipIf(!isInstalled)('a registry without authentication', () => {
  it('has the image by tag, by digest and by both', async () => {
    const { host, push } = await startDockerRegistry();
    const digest = await push('team/apps', '2');
    const images = [`${host}/team/apps:2`, `${host}/team/apps@${digest}`, `${host}/team/apps:2@${digest}`];
    expect(await check(images, { insecure: [host], mode: 'required' })).toEqual(nothing);
  });

  it('lacks a tag, a repository or a digest: each is a problem that names container and image', async () => {
    const { host, push } = await startDockerRegistry();
    await push('apps', '2');
    const images = [
      `${host}/apps:3`,
      `${host}/maps`,
      `${host}/apps@${otherDigest}`,
      `${host}/apps:2@${otherDigest}`,
    ];
    expect(await check(images, { insecure: [host] })).toEqual({
      problems: [
        `images: ${host}/apps:3 (container c0 of deployment/w0) does not exist: ${host} answers 404.`,
        `images: ${host}/maps (container c1 of deployment/w1) does not exist: ${host} answers 404.`,
        `images: ${host}/apps@${otherDigest} (container c2 of deployment/w2) does not exist: ${host} answers 404.`,
        `images: ${host}/apps:2@${otherDigest} (container c3 of deployment/w3) does not exist: ${host} answers 404.`,
      ],
      notices: [],
    });
  });

  it('has the pinned image although its tag points to another one meanwhile', async () => {
    const { host, push } = await startDockerRegistry();
    const former = await push('apps', '2');
    await push('apps', '3');
    expect(await check([`${host}/apps:3@${former}`], { insecure: [host] })).toEqual(nothing);
  });

  it('is asked once for an image that several containers get', async () => {
    const { host } = await startDockerRegistry();
    expect((await check([`${host}/apps:2`, `${host}/apps:2`], { insecure: [host] })).problems).toEqual([
      `images: ${host}/apps:2 (containers c0 of deployment/w0, c1 of deployment/w1) does not exist: ${host} answers 404.`,
    ]);
  });

  it('that has stopped is a notice, and a problem if the check is required', async () => {
    const { host, stop } = await startDockerRegistry();
    await stop();
    const images = [`${host}/apps:2`, `${host}/maps:2`];
    const cause = `${host}: The connection was refused. Not checked: ${host}/apps:2, ${host}/maps:2.`;
    expect(await check(images, { insecure: [host] })).toEqual({ problems: [], notices: [cause] });
    expect(await check(images, { insecure: [host], mode: 'required' })).toEqual({
      problems: [`images: ${cause}`],
      notices: [],
    });
  });
});

describe.skipIf(!isInstalled)('a registry with passwords', () => {
  const start = async () => {
    const registry = await startDockerRegistry({ kind: 'basic' });
    await registry.push('apps', '2');
    return registry;
  };

  it('accepts the credentials of the file, in both forms', async () => {
    const { host } = await start();
    const entries = [{ auth: encode(credentials) }, credentials];
    for (const entry of entries) {
      const authFile = writeAuthFile({ auths: { [host]: entry } });
      const { problems, notices } = await check([`${host}/apps:2`, `${host}/apps:3`], {
        insecure: [host],
        authFile,
      });
      expect(problems).toEqual([
        expect.stringContaining(`${host}/apps:3 (container c1 of deployment/w1) does not exist`),
      ]);
      expect(notices).toEqual([]);
    }
  });

  it('refuses wrong credentials and none: nothing is known about the image', async () => {
    const { host } = await start();
    const wrong = { username: 'robot', password: 'wrong password' };
    const authFile = writeAuthFile({ auths: { [host]: wrong } });
    const options = { insecure: [host] };
    expect(await check([`${host}/apps:2`], { ...options, authFile })).toEqual({
      problems: [],
      notices: [`${host} answers 401 to the credentials of REGISTRY_AUTH_FILE. Not checked: ${host}/apps:2.`],
    });
    expect(await check([`${host}/apps:2`], { ...options, mode: 'required' })).toEqual({
      problems: [
        `images: ${host} answers 401, and REGISTRY_AUTH_FILE has no credentials for it. Not checked: ${host}/apps:2.`,
      ],
      notices: [],
    });
  });
});

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** Issues tokens for the credentials, as the registry's documentation of token authentication describes. */
async function startTokenService() {
  const folder = mkdtempSync(join(tmpdir(), 'steward-token-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const certificate = join(folder, 'certificate.pem');
  const keyFile = join(folder, 'key.pem');
  const options = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=test'];
  execFileSync('openssl', ['req', '-x509', ...options, '-keyout', keyFile, '-out', certificate], {
    stdio: 'ignore',
  });
  const key = createPrivateKey(readFileSync(keyFile));
  const x5c = [readFileSync(certificate, 'utf8').replace(/-----[^-]+-----|\s/g, '')];
  const asked: { authorization: string | undefined; query: Record<string, string> }[] = [];

  function sign(claims: object): string {
    const encodePart = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    const content = `${encodePart({ typ: 'JWT', alg: 'RS256', x5c })}.${encodePart(claims)}`;
    return `${content}.${createSign('RSA-SHA256').update(content).sign(key).toString('base64url')}`;
  }

  const server = createServer((request, response) => {
    const query = Object.fromEntries(new URL(request.url ?? '', 'http://localhost').searchParams);
    const { authorization } = request.headers;
    asked.push({ authorization, query });
    if (authorization !== `Basic ${encode(credentials)}`) {
      response.writeHead(401).end('{"details":"a body that no text may show"}');
      return;
    }
    const [type, name, actions = ''] = (query.scope ?? '').split(':');
    const now = Math.floor(Date.now() / 1000);
    const token = sign({
      iss: tokenIssuer,
      sub: credentials.username,
      aud: query.service,
      exp: now + 60,
      nbf: now - 10,
      iat: now,
      jti: randomUUID(),
      access: [{ type, name, actions: actions.split(',') }],
    });
    response.end(JSON.stringify({ token }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { host, realm: `http://${host}/token`, certificate, asked };
}

describe.skipIf(!isInstalled || !hasOpenssl)('a registry with tokens', () => {
  it('accepts the token that its token service issues for the credentials', async () => {
    const service = await startTokenService();
    const { host } = await startDockerRegistry({ kind: 'token', ...service });
    const authFile = writeAuthFile({ auths: { [host]: credentials } });
    const insecure = [host, service.host];
    // Nobody has pushed an image, so a valid token leads to 404, and a wrong one to 401.
    expect(await check([`${host}/team/apps:2`], { insecure, authFile })).toEqual({
      problems: [
        expect.stringContaining(`${host}/team/apps:2 (container c0 of deployment/w0) does not exist`),
      ],
      notices: [],
    });
    expect(service.asked).toEqual([
      {
        authorization: `Basic ${encode(credentials)}`,
        query: { service: tokenService, scope: 'repository:team/apps:pull' },
      },
    ]);
  });

  it('is asked without credentials if the file has those of another registry only', async () => {
    const service = await startTokenService();
    const { host } = await startDockerRegistry({ kind: 'token', ...service });
    const authFile = writeAuthFile({
      auths: { 'registry.example.com': credentials, [service.host]: credentials },
    });
    const insecure = [host, service.host];
    expect((await check([`${host}/apps:2`], { insecure, authFile })).notices).toEqual([
      `${service.host}, the token service of ${host}, answers 401. Not checked: ${host}/apps:2.`,
    ]);
    expect(service.asked.map(({ authorization }) => authorization)).toEqual([undefined]);
  });
});

it.each([
  ['docker.io/library/nginx:1', 'registry-1.docker.io'],
  ['index.docker.io/library/nginx:1', 'registry-1.docker.io'],
  ['registry.example.com/nginx:1', 'registry.example.com'],
])('%s is looked up at %s', (image, host) => {
  expect(parseRegistryReference(image)).toMatchObject({ host });
});

it('the credentials of docker login for its own registry are used there', () => {
  const found = parseRegistryAuth('{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}}');
  expect('auth' in found && [...found.auth.keys()]).toEqual(['registry-1.docker.io']);
});

it('a required check that a busy registry refuses may pass later, and one that lacks credentials may not', async () => {
  const transient = async (status: number) => {
    const server = createServer((_request, response) => response.writeHead(status).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const checker = createChecker({ mode: 'required', insecure: [host] });
    const parts = [{ container: 'a', image: `${host}/a:1`, formerImage: null }];
    const { problems } = await checker.check([{ name: 'deployment/a', component: 'A', parts }]);
    return problems.map(({ isTransient }) => isTransient === true);
  };
  expect(await transient(429)).toEqual([true]);
  expect(await transient(503)).toEqual([true]);
  expect(await transient(403)).toEqual([false]);
  expect(await transient(404)).toEqual([false]);
});
