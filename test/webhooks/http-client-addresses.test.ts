// Tests that the HTTP client connects to no forbidden address, in any spelling and by any name.
import { setDefaultAutoSelectFamily } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { receiverProblem } from '../../src/webhooks/sending/target-policy.ts';
import {
  LOCAL,
  NEVER,
  allow,
  createClient,
  requestTo,
  startAnswering,
  useCanary,
} from './http-client-kit.ts';

const canary = useCanary();

describe('a forbidden address', () => {
  type Spelling = [host: string, address: string];

  const LOOPBACK: Spelling[] = [
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1.', '127.0.0.1'],
    ['127.1', '127.0.0.1'],
    ['127.0.1', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['0x7f000001', '127.0.0.1'],
    ['0X7F000001', '127.0.0.1'],
    ['0x7f.1', '127.0.0.1'],
    ['0x7f.0x0.0x0.0x1', '127.0.0.1'],
    ['0177.0.0.1', '127.0.0.1'],
    ['017700000001', '127.0.0.1'],
    ['00000177.00.00.01', '127.0.0.1'],
    ['127.0.0.0x1.', '127.0.0.1'],
    ['①②⑦.⓪.⓪.①', '127.0.0.1'],
    ['１２７.０.０.１', '127.0.0.1'],
    ['127。0。0。1', '127.0.0.1'],
    ['127%2e0%2e0%2e1', '127.0.0.1'],
    ['%31%32%37.0.0.1', '127.0.0.1'],
    ['[::1]', '::1'],
    ['[0:0:0:0:0:0:0:1]', '::1'],
    ['[0000::0001]', '::1'],
    ['[::0.0.0.1]', '::1'],
    ['127.0.0.2', '127.0.0.2'],
    ['127.255.255.254', '127.255.255.254'],
    ['0.0.0.0', '0.0.0.0'],
    ['0', '0.0.0.0'],
    ['[::]', '::'],
    ['[::ffff:127.0.0.1]', '::ffff:7f00:1'],
    ['[::FFFF:7F00:0001]', '::ffff:7f00:1'],
    ['[0:0:0:0:0:ffff:7f00:1]', '::ffff:7f00:1'],
    ['[::ffff:0:127.0.0.1]', '::ffff:0:7f00:1'],
    ['[::127.0.0.1]', '::7f00:1'],
  ];

  const SPECIAL: Spelling[] = [
    ['0.1.2.3', '0.1.2.3'],
    ['10.0.0.1', '10.0.0.1'],
    ['0xa000001', '10.0.0.1'],
    ['100.64.0.1', '100.64.0.1'],
    ['100.127.255.254', '100.127.255.254'],
    ['169.254.169.254', '169.254.169.254'],
    ['2852039166', '169.254.169.254'],
    ['[::ffff:169.254.169.254]', '::ffff:a9fe:a9fe'],
    ['172.16.0.1', '172.16.0.1'],
    ['172.31.255.254', '172.31.255.254'],
    ['192.0.0.1', '192.0.0.1'],
    ['192.0.2.1', '192.0.2.1'],
    ['192.88.99.1', '192.88.99.1'],
    ['192.168.0.1', '192.168.0.1'],
    ['192.168.257', '192.168.1.1'],
    ['198.18.0.1', '198.18.0.1'],
    ['198.19.255.254', '198.19.255.254'],
    ['198.51.100.1', '198.51.100.1'],
    ['203.0.113.1', '203.0.113.1'],
    ['224.0.0.1', '224.0.0.1'],
    ['239.255.255.255', '239.255.255.255'],
    ['240.0.0.1', '240.0.0.1'],
    ['255.255.255.255', '255.255.255.255'],
    ['[::ffff:10.0.0.1]', '::ffff:a00:1'],
    ['[64:ff9b::127.0.0.1]', '64:ff9b::7f00:1'],
    ['[64:ff9b:1::1]', '64:ff9b:1::1'],
    ['[100::1]', '100::1'],
    ['[1fff::1]', '1fff::1'],
    ['[2001::1]', '2001::1'],
    ['[2001:1ff::1]', '2001:1ff::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2002:7f00:1::]', '2002:7f00:1::'],
    ['[3fff::1]', '3fff::1'],
    ['[4000::1]', '4000::1'],
    ['[fc00::1]', 'fc00::1'],
    ['[fd12:3456::1]', 'fd12:3456::1'],
    ['[fe80::1]', 'fe80::1'],
    ['[fec0::1]', 'fec0::1'],
    ['[ff02::1]', 'ff02::1'],
  ];

  it.each([...LOOPBACK, ...SPECIAL])('is not reached as %s', async (host, address) => {
    canary.visits = 0;
    const url = `http://${host}:${canary.port}/`;
    expect(receiverProblem(url, allow())).toMatch(`must not point to the address ${address}: loopback,`);
    await canary.expectRefusal(
      createClient(allow()).post(requestTo(url), NEVER),
      `The address ${address} is not allowed.`,
    );
  });

  it('is reached in all these spellings if it is allowed', async () => {
    const httpClient = createClient(allow('127.0.0.1/32'));
    for (const [host] of LOOPBACK.filter(([, address]) => address === '127.0.0.1')) {
      const answer = await httpClient.post(requestTo(`http://${host}:${canary.port}/`), NEVER);
      expect(answer.body.toString()).toBe('seen');
    }
  });

  type Resolution = [behaviour: string, addresses: string[], message: string];

  const RESOLUTIONS: Resolution[] = [
    ['loopback', ['127.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    [
      'mapped loopback in full',
      ['0:0:0:0:0:FFFF:7F00:1'],
      'The address 0:0:0:0:0:FFFF:7F00:1 is not allowed.',
    ],
    ['an address with a zone', ['2000::1%lo'], 'The address 2000::1%lo is not allowed.'],
    ['several addresses, loopback last', ['11.0.0.1', '127.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    ['several addresses, loopback first', ['127.0.0.1', '11.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    ['addresses of both families', ['2000::1', '127.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    ['nothing', [], 'The name hooks.example does not resolve.'],
    ['another name', ['localhost'], 'The address localhost is not allowed.'],
    ['an unusual spelling', ['127.1'], 'The address 127.1 is not allowed.'],
    ['an empty address', [''], 'The address  is not allowed.'],
  ];

  it.each(RESOLUTIONS)('is not reached by a name that resolves to %s', async (_, addresses, message) => {
    canary.visits = 0;
    const httpClient = createClient(allow(), () => Promise.resolve(addresses));
    await canary.expectRefusal(
      httpClient.post(requestTo(`http://hooks.example:${canary.port}/`), NEVER),
      message,
    );
  });

  it.each(['localhost', 'localhost.', 'LOCALHOST', 'a.localhost', 'ｌocalhost', '%6cocalhost.'])(
    'is not reached as %s',
    async (host) => {
      canary.visits = 0;
      const url = `http://${host}:${canary.port}/`;
      const { hostname } = new URL(url);
      expect(receiverProblem(url, allow())).toMatch(`must not point to ${hostname}: loopback,`);
      expect(receiverProblem(url, allow('127.0.0.0/8'))).toBeUndefined();
      expect(receiverProblem(url, allow('::1/128'))).toBeUndefined();
      // Whether these names resolve depends on the machine. None of them may lead here.
      await expect(createClient(allow()).post(requestTo(url), NEVER)).rejects.toThrow(
        /not allowed|not resolve/,
      );
      await canary.expectNoVisit();
    },
  );

  it('is not reached if the name cannot be resolved', async () => {
    canary.visits = 0;
    const httpClient = createClient(allow(), () => Promise.reject(new Error('EAI_AGAIN')));
    const sent = httpClient.post(requestTo(`https://hooks.example:${canary.port}/`), NEVER);
    await canary.expectRefusal(sent, 'The name hooks.example does not resolve.');
  });

  it('is not blamed if this process has no file descriptor left', async () => {
    const lost = Object.assign(new Error('lookup'), { code: 'EMFILE' });
    const httpClient = createClient(allow(), () => Promise.reject(lost));
    await expect(httpClient.post(requestTo('http://hooks.example/'), NEVER)).rejects.toBe(lost);
  });

  it('is not reached if a name later resolves to it', async () => {
    const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.1'];
    const { port, sockets } = await startAnswering('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n', true);
    const httpClient = createClient(LOCAL, () => Promise.resolve(addresses.splice(0, 1)));
    const post = () => httpClient.post(requestTo(`http://hooks.example:${port}/`), NEVER);
    expect((await post()).status).toBe(200);
    await expect(post()).rejects.toThrow(new Error('The address 127.0.0.2 is not allowed.'));
    expect((await post()).status).toBe(200);
    // One resolution per connection: the client connects to the address that it checked.
    expect([addresses.length, sockets.length]).toEqual([0, 2]);
  });

  it.each([true, false])(
    'is not reached by a connection with several addresses (autoSelectFamily: %s)',
    async (several) => {
      canary.visits = 0;
      setDefaultAutoSelectFamily(several);
      onTestFinished(() => setDefaultAutoSelectFamily(true));
      const url = `http://hooks.example:${canary.port}/`;
      const refused = createClient(allow('::1/128'), () => Promise.resolve(['::1', '127.0.0.1']));
      await canary.expectRefusal(
        refused.post(requestTo(url), NEVER),
        'The address 127.0.0.1 is not allowed.',
      );
      const reached = createClient(LOCAL, () => Promise.resolve(['127.0.0.1']));
      expect((await reached.post(requestTo(url), NEVER)).body.toString()).toBe('seen');
    },
  );
});
