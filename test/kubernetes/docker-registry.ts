// Starts Debian's docker-registry with an empty storage, and pushes images to it.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export const isInstalled = spawnSync('docker-registry', ['--version']).status === 0;

export const credentials = { username: 'robot', password: 'registry password' };
const passwordHash = '$2y$04$YxgmLKwn0vStdz84CLzXoOBB0kkLvT1s.B1uw3KvdUj4JV3.up4/a';

type Authentication =
  | { readonly kind: 'none' | 'basic' }
  /** The token service, and the certificate of the key that signs its tokens. */
  | { readonly kind: 'token'; readonly realm: string; readonly certificate: string };

/** The registry ends after the test. */
export async function startDockerRegistry(authentication: Authentication = { kind: 'none' }) {
  const folder = mkdtempSync(join(tmpdir(), 'steward-registry-'));
  const host = `127.0.0.1:${await findFreePort()}`;
  writeFileSync(join(folder, 'htpasswd'), `${credentials.username}:${passwordHash}\n`);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(configOf(folder, host, authentication)));
  const child = spawn('docker-registry', ['serve', join(folder, 'config.json')], { stdio: 'ignore' });
  onTestFinished(async () => {
    await stop(child);
    rmSync(folder, { recursive: true });
  });
  await waitUntilReady(child, host);

  async function request(
    method: string,
    path: string,
    body?: string | Buffer,
    type = 'application/octet-stream',
  ) {
    const { username, password } = credentials;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    return fetch(new URL(path, `http://${host}`), {
      method,
      body: body ?? null,
      headers: { 'content-type': type, ...(authentication.kind === 'basic' && { authorization }) },
    });
  }

  /** Pushes an image without layers and returns its digest. */
  async function push(repository: string, tag: string): Promise<string> {
    const config = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', name: repository, tag }));
    const started = await request('POST', `/v2/${repository}/blobs/uploads/`);
    const upload = new URL(started.headers.get('location') ?? '', `http://${host}`);
    upload.searchParams.set('digest', digestOf(config));
    await request('PUT', upload.href, config);
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        size: config.length,
        digest: digestOf(config),
      },
      layers: [],
    });
    const pushed = await request('PUT', `/v2/${repository}/manifests/${tag}`, manifest, manifestType);
    if (pushed.status !== 201) throw new Error(`The push was answered with ${pushed.status}.`);
    return digestOf(Buffer.from(manifest));
  }

  return { host, push, stop: () => stop(child) };
}

const manifestType = 'application/vnd.oci.image.manifest.v1+json';

export function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** JSON is YAML too. */
function configOf(folder: string, addr: string, authentication: Authentication) {
  const { kind } = authentication;
  return {
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: join(folder, 'data') } },
    http: { addr, secret: 'one process needs no secret' },
    ...(kind === 'basic' && { auth: { htpasswd: { realm: 'test', path: join(folder, 'htpasswd') } } }),
    ...(kind === 'token' && {
      auth: {
        token: {
          realm: authentication.realm,
          service: tokenService,
          issuer: tokenIssuer,
          rootcertbundle: authentication.certificate,
        },
      },
    }),
  };
}

export const tokenService = 'registry of the test';
export const tokenIssuer = 'token service of the test';

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function waitUntilReady(child: ChildProcess, host: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await fetch(`http://${host}/v2/`);
      return;
    } catch (error) {
      if (attempt === 100 || child.exitCode !== null) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
