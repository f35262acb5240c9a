// Names of receivers: what a hosts file says of them.
import { expect, it } from 'vitest';
import { findInHosts } from '../../src/webhooks/resolver.ts';

it.each<[string, string, string[]]>([
  ['127.0.0.1 localhost', 'localhost', ['127.0.0.1']],
  ['127.0.0.1\tlocalhost\n::1 ip6-localhost localhost # both', 'LocalHost', ['127.0.0.1', '::1']],
  ['10.0.0.1 hooks.example hooks', 'hooks', ['10.0.0.1']],
  ['10.0.0.1 hooks.example', 'hooks.example.', ['10.0.0.1']],
  ['# 10.0.0.1 hooks.example', 'hooks.example', []],
  ['10.0.0.1 other.example', 'hooks.example', []],
  ['', 'hooks.example', []],
])('a hosts file: %s has %s', (text, name, addresses) => {
  expect(findInHosts(text, name)).toEqual(addresses);
});
