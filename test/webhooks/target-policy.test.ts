// Tests of the rules for receivers: forbidden addresses, problems of a URL, and the receiver of a URL.
import { describe, expect, it } from 'vitest';
import { isForbidden, receiverProblem, receiverOf } from '../../src/webhooks/sending/target-policy.ts';
import { allow } from './http-client-kit.ts';

describe('isForbidden', () => {
  it.each([
    '1.0.0.0',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '::ffff:11.0.0.1',
    '2000::',
    '2001:200::',
    '2001:db9::',
    '2003::',
    '3ffe:ffff::',
  ])('allows %s', (address) => {
    expect(isForbidden(address, allow())).toBe(false);
  });

  type Case = [range: string, inside: string[], outside: string[]];

  it.each<Case>([
    [
      '10.1.0.0/16',
      ['10.1.0.0', '10.1.255.255', '::ffff:10.1.2.3'],
      ['10.0.255.255', '10.2.0.0', '::ffff:10.2.0.0'],
    ],
    [
      '127.0.0.1/32',
      ['127.0.0.1', '::ffff:7f00:1'],
      ['127.0.0.0', '127.0.0.2', '::1', '::127.0.0.1', '::ffff:0:7f00:1'],
    ],
    ['0.0.0.0/0', ['10.0.0.1', '255.255.255.255'], ['::1', 'fd00::1', '127.1', '127.0.0.1 ', '']],
    ['::1/128', ['::1'], ['::', '::2', '127.0.0.1', '::1%lo']],
    ['fd00:1::/32', ['fd00:1::', 'fd00:1:ffff::1'], ['fd00:2::', 'fd00::1', 'fd00:1::1%lo']],
  ])('allows %s and no more if it is configured', (range, inside, outside) => {
    expect(inside.filter((address) => isForbidden(address, allow(range)))).toEqual([]);
    expect(outside.filter((address) => !isForbidden(address, allow(range)))).toEqual([]);
  });
});

describe('receiverProblem', () => {
  it.each([
    'http://hooks.example',
    'https://hooks.example:8443/a?b=c',
    'HTTP://11.0.0.1/',
    'http://[2000::1]/',
    'http://localhost.example/',
    'http://notlocalhost/',
    'http://hooks.example/@127.0.0.1',
  ])('accepts %s', (url) => {
    expect(receiverProblem(url, allow())).toBeUndefined();
  });

  it.each([
    ['', 'must be an absolute http or https address of at most 2048 characters.'],
    ['hooks.example', 'must be an absolute'],
    ['ftp://hooks.example/', 'must be an absolute'],
    ['http:127.0.0.1', 'must be an absolute'],
    ['http:\\\\127.0.0.1', 'must be an absolute'],
    ['http://[fe80::1%25lo]/', 'must be an absolute'],
    ['http://127.0.0.1%00/', 'must be an absolute'],
    ['http://me@hooks.example/', 'must not contain a user name or password.'],
    ['http://:pass@hooks.example/', 'must not contain a user name or password.'],
    ['http://hooks.example:80@11.0.0.1/', 'must not contain a user name or password.'],
    ['http://hooks.example\\@127.0.0.1/', undefined],
    ['http://@127.0.0.1/', 'must not point to the address 127.0.0.1: loopback,'],
  ])('returns for %s: %s', (url, problem) => {
    if (problem === undefined) expect(receiverProblem(url, allow())).toBeUndefined();
    else expect(receiverProblem(url, allow())).toMatch(problem);
  });
});

it.each([
  ['http://hooks.example/a', 'http://hooks.example'],
  ['HTTP://Hooks.Example:80/b?c', 'http://hooks.example'],
  ['https://hooks.example:80', 'https://hooks.example:80'],
  ['http://0x7f.1:8080/', 'http://127.0.0.1:8080'],
])('the receiver of %s is %s', (url, receiver) => {
  expect(receiverOf(url)).toBe(receiver);
});
