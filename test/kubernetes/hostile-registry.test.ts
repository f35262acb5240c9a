// Registries that answer wrongly, too much, too late, or that point elsewhere: an image check ends, and reveals
// nothing.
import { describe, expect, it } from 'vitest';
import { createFakeRuntime } from '../kit/runtime.ts';
import { digestOf } from './docker-registry.ts';
import { type Answer, answerWith, bodyText, silence, startHostileRegistry } from './hostile-registry.ts';
import { check, checkWith, createChecker, encode, nothing, writeAuthFile } from './image-check-kit.ts';

const credentials = { username: 'robot', password: 'registry password' };
const digest = digestOf(Buffer.from('a manifest'));
const otherDigest = digestOf(Buffer.from('another manifest'));

const named = (count: number, host: string) => Array.from({ length: count }, (_, n) => `${host}/apps:${n}`);

describe('the status of an answer', () => {
  it.each([
    [400, ''],
    [403, ', and REGISTRY_AUTH_FILE has no credentials for it'],
    [405, ''],
    [429, ''],
    [500, ''],
    [503, ''],
  ])('%i is a notice, and a problem if the check is required', async (status, reason) => {
    const { host } = await startHostileRegistry(answerWith(status));
    const text = `${host} answers ${status}${reason}. Not checked: ${host}/apps:2.`;
    expect(await check([`${host}/apps:2`], { insecure: [host] })).toEqual({ problems: [], notices: [text] });
    expect(await check([`${host}/apps:2`], { insecure: [host], mode: 'required' })).toEqual({
      problems: [`images: ${text}`],
      notices: [],
    });
  });

  it('of a redirect is a notice, and the redirect is not followed', async () => {
    const other = await startHostileRegistry(answerWith(200));
    const location = `http://${other.host}/v2/apps/manifests/2`;
    for (const status of [301, 302, 307, 308]) {
      const { host } = await startHostileRegistry(answerWith(status, { location }));
      expect((await check([`${host}/apps:2`], { insecure: [host, other.host] })).notices).toEqual([
        `${host} answers ${status}, a redirect, which Steward does not follow. Not checked: ${host}/apps:2.`,
      ]);
    }
    expect(other.asked).toEqual([]);
  });
});

describe('a request', () => {
  it('asks for manifests and indexes, and sends no credentials before the registry wants them', async () => {
    const { host, asked } = await startHostileRegistry(answerWith(200));
    const authFile = writeAuthFile({ auths: { [host]: credentials } });
    expect(await check([`${host}/team/apps:2`], { insecure: [host], authFile })).toEqual(nothing);
    expect(asked).toMatchObject([
      {
        method: 'HEAD',
        path: '/v2/team/apps/manifests/2',
        headers: {
          'user-agent': 'Steward/test',
          accept:
            'application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, ' +
            'application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json',
        },
      },
    ]);
    expect(asked[0]?.headers.authorization).toBeUndefined();
  });

  it('is not sent for an image without a registry host, nor for an invalid reference', async () => {
    const { host, asked } = await startHostileRegistry(answerWith(404));
    const invalid = [
      `${host}/Apps:2`,
      `${host}/apps:`,
      `${host}/../v2/apps:2`,
      `${host}/apps:2?a=b`,
      `${host}/apps@sha256:12`,
    ];
    const { problems, notices } = await check(['apps:2', 'team/maps', ...invalid], {
      insecure: [host],
      mode: 'required',
    });
    expect(problems).toEqual(
      invalid.map(
        (image, n) =>
          `images: ${image} (container c${n + 2} of deployment/w${n + 2}) is not a valid reference of an image.`,
      ),
    );
    expect(notices).toEqual(['Images without a registry host are not checked: apps:2, team/maps.']);
    expect(asked).toEqual([]);
  });
});

it('an image with a digest is asked for by its digest, and a 200 is believed', async () => {
  const { host, asked } = await startHostileRegistry(
    answerWith(200, { 'docker-content-digest': otherDigest }),
  );
  const images = [`${host}/apps@${digest}`, `${host}/apps:2@${digest}`];
  expect(await check(images, { insecure: [host] })).toEqual(nothing);
  expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual(
    images.map(() => `HEAD /v2/apps/manifests/${digest}`),
  );
});

describe('an answer', () => {
  it('that is not HTTP, or has too many headers, is a notice', async () => {
    const garbage = await startHostileRegistry((response) => void response.socket?.end('SSH-2.0-test\r\n'));
    const { host } = await startHostileRegistry(answerWith(200, { 'x-long': 'x'.repeat(20_000) }));
    const { notices } = await check([`${garbage.host}/apps:2`, `${host}/apps:2`], {
      insecure: [host, garbage.host],
    });
    expect(notices).toEqual([
      `${garbage.host}: The answer is not valid HTTP. Not checked: ${garbage.host}/apps:2.`,
      `${host}: The headers of the answer are too large. Not checked: ${host}/apps:2.`,
    ]);
  });

  it('that begins with endless informational responses is a notice', async () => {
    const { host } = await startHostileRegistry(({ socket }) => {
      const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1000));
      const write = () => {
        while (socket?.writable === true && socket.write(hints));
      };
      socket?.on('drain', write);
      socket?.on('error', () => undefined);
      write();
    });
    expect((await check([`${host}/apps:2`], { insecure: [host] })).notices).toEqual([
      `${host}: The answer has more than ${(64 + 128) * 1024} bytes. Not checked: ${host}/apps:2.`,
    ]);
  });

  it('that does not come within 10 seconds is a notice', async () => {
    const runtime = createFakeRuntime();
    const { host, asked, sockets } = await startHostileRegistry(silence);
    const checking = check(named(8, host), { insecure: [host], runtime });
    await expect.poll(() => asked.length).toBe(8);
    await runtime.advance(9_999);
    expect(sockets.size).toBe(8);
    await runtime.advance(1);
    expect((await checking).notices).toEqual([
      expect.stringMatching(/: no complete answer came within 10 seconds\. Not checked: /),
    ]);
    await expect.poll(() => sockets.size).toBe(0);
  });
});

describe('many images', () => {
  const hosts = Array.from({ length: 100 }, (_, n) => `h${n}.example`);

  it('are looked up for at most 60 seconds, 8 at once', async () => {
    const runtime = createFakeRuntime();
    const { port, asked } = await startHostileRegistry(silence);
    const insecure = hosts.map((host) => `${host}:${port}`);
    const resolve = () => Promise.resolve(['127.0.0.1']);
    let isDone = false;
    const checking = check(
      insecure.map((host) => `${host}/apps:2`),
      { insecure, runtime, resolve },
    ).finally(() => (isDone = true));
    for (let round = 1; round <= 6; round += 1) {
      await expect.poll(() => asked.length).toBe(8 * round);
      expect(isDone).toBe(false);
      await runtime.advance(10_000);
    }
    const { notices } = await checking;
    expect(notices.at(-1)).toMatch(/^The lookups took longer than 60 seconds\. Not checked: .*\.$/);
    expect(notices.length).toBeGreaterThan(40);
    expect(asked).toHaveLength(48);
  });

  it('of several requests at the same time are looked up 8 at once', async () => {
    const waiting: (() => void)[] = [];
    let maxWaiting = 0;
    const { host, asked } = await startHostileRegistry((response) => {
      waiting.push(() => void response.end());
      maxWaiting = Math.max(maxWaiting, waiting.length);
    });
    const checker = createChecker({ insecure: [host] });
    const results = [1, 2, 3].map(() => checkWith(checker, named(10, host)));
    for (let answered = 0; answered < 30; answered += 1) {
      await expect.poll(() => waiting.length).toBeGreaterThan(0);
      waiting.shift()?.();
    }
    expect(await Promise.all(results)).toEqual([nothing, nothing, nothing]);
    expect(asked).toHaveLength(30);
    expect(maxWaiting).toBe(8);
  });
});

describe('a token service', () => {
  const challenge = (realm: string) => ({
    'www-authenticate': `Bearer realm="${realm}",service="images",scope="repository:secret:push"`,
  });

  async function checkThrough(realmOf: (serviceHost: string) => string, answer: Answer, isInsecure = true) {
    const service = await startHostileRegistry(answer);
    const registry = await startHostileRegistry((response, { headers }) => {
      const isAllowed = headers.authorization === 'Bearer right';
      answerWith(isAllowed ? 200 : 401, challenge(realmOf(service.host)))(response, {
        method: '',
        path: '',
        headers,
      });
    });
    const { host } = registry;
    const authFile = writeAuthFile({
      auths: { [host]: credentials, 'other.example': { auth: 'b3RoZXI6b3RoZXI=' } },
    });
    const insecure = isInsecure ? [host, service.host] : [host];
    return { service, registry, host, result: await check([`${host}/apps:2`], { insecure, authFile }) };
  }
  const withToken =
    (body: string): Answer =>
    (response) =>
      void response.end(body);

  it.each(['token', 'access_token'])(
    'issues a token in the field %s, for pulling this repository only',
    async (field) => {
      const { service, registry, result } = await checkThrough(
        (host) => `http://${host}/token?account=a`,
        withToken(JSON.stringify({ [field]: 'right' })),
      );
      expect(result).toEqual(nothing);
      expect(service.asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
        'GET /token?account=a&service=images&scope=repository%3Aapps%3Apull',
      ]);
      expect(service.asked[0]?.headers.authorization).toBe(`Basic ${encode(credentials)}`);
      expect(registry.asked.map(({ headers }) => headers.authorization)).toEqual([undefined, 'Bearer right']);
    },
  );

  it.each<[string, (host: string) => string]>([
    ['plain http', (host) => `http://${host}/token`],
    ['another scheme', (host) => `ftp://${host}/token`],
    ['a user name', (host) => `https://robot@${host}/token`],
    ['no address', () => 'token'],
    ['an empty address', () => ''],
  ])('with %s is not asked', async (_title, realmOf) => {
    const { service, host, result } = await checkThrough(realmOf, answerWith(200), false);
    expect(result).toEqual({
      problems: [],
      notices: [
        `${host} names a token service that is not an https address, or plain http of a host in REGISTRY_INSECURE. ` +
          `Not checked: ${host}/apps:2.`,
      ],
    });
    expect(service.asked).toEqual([]);
  });

  it('at a loopback address is not asked, unless REGISTRY_INSECURE names it', async () => {
    const { service, result } = await checkThrough((host) => `https://${host}/token`, answerWith(200), false);
    expect(result.notices).toEqual([
      expect.stringContaining(`${service.host}: The address 127.0.0.1 is not allowed.`),
    ]);
    expect(service.sockets.size).toBe(0);
    expect(service.asked).toEqual([]);
  });

  it.each<[string, Answer]>([
    ['no JSON', withToken(bodyText)],
    ['null', withToken('null')],
    ['no token', withToken('{}')],
    ['a token with a line break', withToken(JSON.stringify({ token: 'right\r\nx: y' }))],
  ])('that returns %s is a notice', async (_title, answer) => {
    const { service, host, result } = await checkThrough((realm) => `http://${realm}/token`, answer);
    expect(result.notices).toEqual([
      `${service.host}, the token service of ${host}, returns no valid token. Not checked: ${host}/apps:2.`,
    ]);
  });

  it.each([301, 401, 403, 500])('that answers %i is a notice', async (status) => {
    const { service, host, result } = await checkThrough(
      (realm) => `http://${realm}/token`,
      answerWith(status, { location: 'http://127.0.0.1:1/' }),
    );
    expect(result.notices).toEqual([
      `${service.host}, the token service of ${host}, answers ${status}. Not checked: ${host}/apps:2.`,
    ]);
  });

  it('whose answer has no end does not answer in time', async () => {
    const runtime = createFakeRuntime();
    const service = await startHostileRegistry((response) => void response.write('{'));
    const { host } = await startHostileRegistry(answerWith(401, challenge(`http://${service.host}/token`)));
    const checking = check([`${host}/apps:2`], { insecure: [host, service.host], runtime });
    await expect.poll(() => service.asked.length).toBe(1);
    await runtime.advance(10_000);
    expect((await checking).notices).toEqual([expect.stringContaining('within 10 seconds')]);
  });

  it('that returns more than 64 KiB is a notice', async () => {
    const { result } = await checkThrough(
      (realm) => `http://${realm}/token`,
      withToken(JSON.stringify({ token: 'x'.repeat(70_000) })),
    );
    expect(result.notices).toEqual([expect.stringContaining('The answer has more than 65536 bytes.')]);
  });

  it('whose token the registry refuses is asked once', async () => {
    const { service, host, result } = await checkThrough(
      (realm) => `http://${realm}/token`,
      withToken('{"token":"wrong"}'),
    );
    expect(result.notices).toEqual([
      `${host} answers 401 to the credentials of REGISTRY_AUTH_FILE. Not checked: ${host}/apps:2.`,
    ]);
    expect(service.asked).toHaveLength(1);
  });
});

describe('the address of a registry', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.200.1.1', true],
    ['0.0.0.0', true],
    ['169.254.169.254', true],
    ['::1', true],
    ['::', true],
    ['::ffff:127.0.0.1', true],
    ['::ffff:169.254.1.1', true],
    ['fe80::1', true],
    ['fe80::1%eth0', true],
    ['febf::1', true],
    ['fd00:ec2::254', true],
    ['64:ff9b::a9fe:a9fe', true],
    ['64:ff9b::169.254.169.254', true],
    ['64:ff9b::7f00:1', true],
    ['64:ff9b::', true],
    ['64:ff9b:1::a9fe:a9fe', true],
    ['64:ff9b:1:a9fe:a9:fe00::', true],
    ['2002:a9fe:a9fe::1', true],
    ['::a9fe:a9fe', true],
    ['::ffff:0:a9fe:a9fe', true],
    ['64:ff9b::c633:6407', false],
    ['fd00:ec2::253', false],
    ['10.0.0.1', false],
    ['192.168.1.1', false],
    ['198.51.100.7', false],
    ['2001:db8::1', false],
    ['fd00::1', false],
  ])('%s is refused: %s', async (address, isRefused) => {
    const runtime = createFakeRuntime();
    const resolve = () => Promise.resolve([address]);
    const checking = check(['registry.example:1/apps:2'], { resolve, runtime });
    // An address that is not refused is connected to. It may not answer.
    if (!isRefused) await runtime.advance(10_000);
    const { notices } = await checking;
    const refusal = `registry.example:1: The address ${address} is not allowed. Not checked: registry.example:1/apps:2.`;
    if (isRefused) expect(notices).toEqual([refusal]);
    else expect(notices).not.toEqual([refusal]);
  });

  it.each(['127.1:1', '2130706433:1', '0x7f.1:1', '[::1]:1', '[::ffff:7f00:1]:1', 'localhost:1'])(
    '%s is refused in every spelling',
    async (host) => {
      const { notices } = await check([`${host}/apps:2`]);
      expect(notices).toEqual([
        expect.stringMatching(/: The address (127\.0\.0\.1|::1|::ffff:7f00:1) is not allowed\./),
      ]);
    },
  );

  it('is refused if one of several is refused', async () => {
    const resolve = () => Promise.resolve(['198.51.100.7', '127.0.0.1']);
    expect((await check(['registry.example/apps:2'], { resolve })).notices).toEqual([
      'registry.example: The address 127.0.0.1 is not allowed. Not checked: registry.example/apps:2.',
    ]);
  });

  it('of a name without an address is unknown', async () => {
    const resolve = () => Promise.resolve([]);
    expect((await check(['registry.example/apps:2'], { resolve })).notices).toEqual([
      'registry.example: The name registry.example does not resolve. Not checked: registry.example/apps:2.',
    ]);
  });
});
