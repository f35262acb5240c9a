// Tests of finding names in a hosts file.
import { expect, it } from 'vitest';
import { findInHosts } from '../../src/lib/guarded-connector.ts';

it.each<[string, string, string[]]>([
  ['127.0.0.1 localhost', 'localhost', ['127.0.0.1']],
  ['127.0.0.1\tlocalhost\n::1 ip6-localhost localhost # both', 'LocalHost', ['127.0.0.1', '::1']],
  ['10.0.0.1 hooks.example hooks', 'hooks', ['10.0.0.1']],
  ['10.0.0.1 hooks.example', 'hooks.example.', ['10.0.0.1']],
  ['# 10.0.0.1 hooks.example', 'hooks.example', []],
  ['10.0.0.1 other.example', 'hooks.example', []],
  ['', 'hooks.example', []],
])('in the hosts file %s, the name %s is found', (text, name, addresses) => {
  expect(findInHosts(text, name)).toEqual(addresses);
});
