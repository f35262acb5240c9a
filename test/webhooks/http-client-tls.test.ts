// Tests of receivers with certificates of an authority that WEBHOOK_CA_FILE names. The tests make the authority.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { GuardedHttpClient, readAuthorities } from '../../src/webhooks/sending/http-client.ts';
import { LOCAL, NEVER, listen, requestTo } from './http-client-kit.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'steward-tls-'));
  if (!hasOpenssl) return;
  for (const name of ['own', 'unknown'])
    openssl('req', '-x509', ...newKey, '-days', '2', '-subj', `/CN=${name} authority`, ...output(name));
});
afterAll(() => rmSync(folder, { recursive: true }));

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
const output = (name: string) => ['-keyout', `${name}.key`, '-out', `${name}.pem`];
const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const readText = (text: string) => {
  writeFileSync(join(folder, 'given.pem'), text);
  return readAuthorities(join(folder, 'given.pem'));
};

/** Starts a receiver with a certificate for the name. A negative number of days makes an expired one. */
async function startTlsReceiver({ name = 'hooks.internal', days = 2, authority = 'own' } = {}) {
  openssl('req', ...newKey, '-subj', `/CN=${name}`, '-keyout', 'server.key', '-out', 'server.csr');
  writeFileSync(join(folder, 'names'), `subjectAltName=DNS:${name}`);
  const signer = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial'];
  const signed = ['-days', String(days), '-extfile', 'names', '-out', 'server.pem'];
  openssl('x509', '-req', '-in', 'server.csr', ...signer, ...signed);
  const server = createServer({ key: read('server.key'), cert: read('server.pem') }, (_request, response) => {
    response.writeHead(204).end();
  });
  const port = await listen(server, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://hooks.internal:${port}/in`;
}

async function post(url: string, authorities: readonly string[]) {
  const httpClient = new GuardedHttpClient(LOCAL, {
    resolve: () => Promise.resolve(['127.0.0.1']),
    authorities,
  });
  onTestFinished(() => httpClient.close());
  return httpClient.post(requestTo(url), NEVER);
}

describe.skipIf(!hasOpenssl)('a receiver with a certificate of a private authority', () => {
  it('is trusted if the authority is configured', async () => {
    expect(await post(await startTlsReceiver(), [read('own.pem')])).toMatchObject({ status: 204 });
  });

  it.each([
    ['if no authority is configured', {}, [], /^The certificate is not valid: unable to verify/],
    [
      'if another authority is configured',
      { authority: 'unknown' },
      ['own.pem'],
      /^The certificate is not valid: unable/,
    ],
    [
      'with another name',
      { name: 'other.internal' },
      ['own.pem'],
      /^The certificate is not valid: it is for another name\.$/,
    ],
    [
      'that has expired',
      { days: -1 },
      ['own.pem'],
      /^The certificate is not valid: certificate has expired\.$/,
    ],
  ])('is refused %s', async (_name, receiver, authorities, message) => {
    const url = await startTlsReceiver(receiver);
    await expect(post(url, authorities.map(read))).rejects.toThrow(message);
  });

  it('may be one of several in the file, with comments', async () => {
    const text = `# Our authorities\n${read('own.pem')}\nAnother:\n${read('unknown.pem')}`;
    expect(await readText(text)).toMatchObject({ authorities: [expect.any(String), expect.any(String)] });
    expect(await readText(text.replace('MII', 'AAA'))).toEqual({
      problems: ['WEBHOOK_CA_FILE: the certificate 1 cannot be read.'],
    });
    expect(await readText(text.trimEnd().slice(0, -1))).toEqual({
      problems: ['WEBHOOK_CA_FILE: the certificate 2 cannot be read.'],
    });
  });
});

it('the file must be there and contain certificates', async () => {
  expect(await readAuthorities(undefined)).toEqual({ authorities: [] });
  expect(await readAuthorities(join(folder, 'none.pem'))).toEqual({
    problems: ['WEBHOOK_CA_FILE cannot be read: ENOENT.'],
  });
  expect(await readText('-----BEGIN PRIVATE KEY-----')).toEqual({
    problems: ['WEBHOOK_CA_FILE must contain certificates in PEM format (BEGIN CERTIFICATE).'],
  });
});
