// The mask of the journal: which values it hides in which forms, and that no text takes long.
import { describe, expect, it } from 'vitest';
import { maxKeptBodyBytes } from '../../src/testing/journal.ts';
import { ExchangeMask } from '../../src/testing/mask.ts';
import { cpuMs } from '../kit/cost.ts';

const part = (name: string, value: string) =>
  `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const encode = encodeURIComponent;

describe('masks in a body', () => {
  it.each([
    ['a form', 'username=a&password=secret&f=json', 'username=a&password=***&f=json'],
    ['names with brackets', 'password[]=s&user%5Bpwd%5D=s&a[]=b', 'password[]=***&user%5Bpwd%5D=***&a[]=b'],
    ['no limits and times', 'maxTokens=5&expirationOfToken=6', 'maxTokens=5&expirationOfToken=6'],
    [
      'JSON in a field',
      `upgradeSettings=${encode('{"database":{"dbPassword":"s","host":"h"}}')}&a=%zz`,
      `upgradeSettings=${encode('{"database":{"dbPassword":"***","host":"h"}}')}&a=%zz`,
    ],
    [
      'the query of a receiver',
      `hookUrl=${encode('https://hooks.example/in?code=s#t')}&name=in`,
      `hookUrl=${encode('https://hooks.example/in?***')}&name=in`,
    ],
    [
      'a multipart form',
      `--b\r\n${part('username', 'a')}--b\r\n${part('password', 's\r\n--')}--b\r\n${part('file', '{"token":"s"}')}--b--`,
      `--b\r\n${part('username', 'a')}--b\r\n${part('password', '***')}--b\r\n${part('file', '{"token":"***"}')}--b--`,
    ],
    ['a boundary with =', `--=_P\n${part('key', 's')}--=_P--`, `--=_P\n${part('key', '***')}--=_P--`],
    ['JSON', '{ "password" : "a\\"b\\\\", "user": "u" }', '{ "password" : "***", "user": "u" }'],
    ['escaped names of JSON', '{"pass\\u0077ord":"s"}', '{"pass\\u0077ord":"***"}'],
    [
      'lists',
      '{"keys":["s","t"],"a":["b",{"token":"s"}]}',
      '{"keys":["***","***"],"a":["b",{"token":"***"}]}',
    ],
    ['headers in a form', `headers=${encode('{"a":"s"}')}&a=b`, 'headers=***&a=b'],
    ['XML in JSON', '{"a":"<B Key=\\"s\\"/>"}', '{"a":"<B Key=\\"***\\"/>"}'],
    ['a secret that is cut', '{"a":"b","key":"s\\u00', '{"a":"b","key":"***"'],
    ['the name before a list', '{"keys":[{"id":"a"}],"b":"c"}', '{"keys":[{"id":"a"}],"b":"c"}'],
    ['the receiver in JSON', '{"hookUrl":"http://a.example/?s"}', '{"hookUrl":"http://a.example/?***"}'],
    ['elements', '<w:Password Type="a">\n s </w:Password>b', '<w:Password Type="a">***</w:Password>b'],
    ['attributes', `<User Name='a' Pwd = 's>t' x:Token="s"/>`, `<User Name='a' Pwd="***" x:Token="***"/>`],
    ['attributes that are cut', '<User Name="a" Password="secret', '<User Name="a" Password="***"'],
    ['no text like an attribute', '{"a":"?key=","b":"c"}', '{"a":"?key=","b":"c"}'],
    ['text after a comment', '<Key><!-- a -->s</Key>', '<Key><!-- a -->***</Key>'],
    ['forms of secrets', `whsec_${'a'.repeat(16)} form_a`, 'whsec_*** form_a'],
  ])('%s', (_what, body, masked) => {
    expect(new ExchangeMask().body(body)).toBe(masked);
  });
});

it.each([
  ['/admin/mode?f=json&token=s', '/admin/mode?f=json&token=***'],
  ['/admin/mode&f=json&token=s', '/admin/mode&f=json&token=***'],
  ['/admin/mode;token=s', '/admin/mode;token=***'],
  ['/a%20b+c?d', '/a%20b+c?d'],
  ['/tokens/oidc/callback?code=s&state=t&iss=i', '/tokens/oidc/callback?code=***&state=***&iss=i'],
  ['https://a.example/start?state=t&code_challenge=c', 'https://a.example/start?state=***&code_challenge=c'],
  ['/admin/services/webhooks/deliveries?state=failed', '/admin/services/webhooks/deliveries?state=failed'],
])('masks in the address %s', (address, masked) => {
  expect(new ExchangeMask().address(address)).toBe(masked);
});

it('masks what it has found before, from 8 characters on', () => {
  const mask = new ExchangeMask();
  mask.headers({ authorization: 'Bearer 12345678', cookie: 'a=12345678-long; b=short' });
  mask.body('key=%3Cb%3E+%22c%22+d&password=12345678');
  expect(mask.body('12345678-long, 12345678, short')).toBe('***, ***, short');
  expect(mask.body('&lt;b&gt; &quot;c&quot; d, <b> "c" d, <b> \\"c\\" d')).toBe('***, ***, ***');
});

/** The longest text that the journal keeps. */
const fill = (repeated: string, start = '') =>
  (start + repeated.repeat(maxKeptBodyBytes)).slice(0, maxKeptBodyBytes);

const hostileTexts = [
  fill('name=', '--x\n'),
  fill('name="', '--x\n\n'),
  fill('-'),
  fill('a', '--'),
  fill('\r\n', '--x'),
  fill('name=a\n'),
  fill('&'),
  fill('[]', 'a'),
  fill('%41', 'a='),
  fill('?', 'hookUrl='),
  fill('@', 'hookUrl=http://'),
  fill('"'),
  fill('\\', '"'),
  fill('\\"'),
  fill('"a":"'),
  fill('"a":["'),
  fill('\\"a\\":\\"', '{"a":"{'),
  fill('"headers":{'),
  fill('"headers":["a",'),
  fill('<'),
  fill('<a '),
  fill('<a b="'),
  fill('<input name=""', '{'),
  fill('<textarea name=""', '{'),
  fill('a=b ', '<a '),
  fill(' ', '<a b'),
  fill('<![CDATA['),
  fill('<![CDATA[', '<hookUrl>'),
  fill('<![CDATA[', '<key>'),
  fill('<dt>key</dt><dd>12345678'),
  fill('form_'),
  fill(' '),
  fill('\n'),
  Array.from({ length: 3000 }, (_, number) => `key=${10_000_000 + number}`).join('&'),
  ...['', 'a'.repeat(120)].map((end) => {
    const keys = Array.from({ length: 64 }, (_, number) => `key=${'a'.repeat(120)}${100 + number}${end}&`);
    return `${keys.join('')}${'a'.repeat(60_000)}`.slice(0, maxKeptBodyBytes);
  }),
];

it.each(hostileTexts.map((text) => [JSON.stringify(text.slice(0, 24)), text]))(
  'masks a long text that begins with %s in little time',
  (_start, text) => {
    const mask = new ExchangeMask();
    const before = cpuMs();
    mask.address(text);
    mask.headers({ referer: text, cookie: text });
    mask.body(text);
    mask.body(text);
    // These take less than 0.2 s. They would take hours if the time grew with the third power of the length.
    expect(cpuMs() - before).toBeLessThan(2000);
  },
);
