// Tests the decoding of messages: charset parameters, and why a message is refused. libxml2.test.ts compares what has no
// charset parameter.
import { describe, expect, it } from 'vitest';
import { decodeXml } from '../../src/soap/xml/decode.ts';
import { expectRefusal } from '../kit/xml.ts';

describe('decodeXml', () => {
  const TEXT = '<a>é€😀</a>';
  const MARKED = `\uFEFF${TEXT}`;
  const PLAIN = utf8('<a/>');
  const LATIN_1 = Buffer.from('<a>é</a>', 'latin1');

  function utf8(text: string): Buffer {
    return Buffer.from(text);
  }

  function utf16le(text: string): Buffer {
    return Buffer.from(text, 'utf16le');
  }

  function utf16be(text: string): Buffer {
    return Buffer.from(text, 'utf16le').swap16();
  }

  function declare(encoding: string): string {
    return `<?xml version="1.0" encoding="${encoding}"?><a/>`;
  }

  type Case = [behaviour: string, bytes: Buffer, charset: string | undefined, expected: string];

  const DECODED: Case[] = [
    ['UTF-8 by the charset', utf8(TEXT), 'utf-8', TEXT],
    ['UTF-8 by the charset in capitals', utf8(TEXT), 'UTF-8', TEXT],
    ['UTF-8 by the charset without hyphen', utf8(TEXT), 'utf8', TEXT],
    ['ASCII by the charset', PLAIN, 'US-ASCII', '<a/>'],
    ['UTF-16LE by the charset', utf16le(` ${TEXT}`), 'utf-16le', ` ${TEXT}`],
    ['UTF-16BE by the charset', utf16be(` ${TEXT}`), 'UTF-16BE', ` ${TEXT}`],
    ['UTF-16 by the charset, little-endian by its first bytes', utf16le(TEXT), 'utf-16', TEXT],
    ['UTF-16 by the charset, big-endian by its first bytes', utf16be(TEXT), 'utf-16', TEXT],
    ['UTF-16 by the charset, big-endian by default', utf16be(` ${TEXT}`), 'utf-16', ` ${TEXT}`],
    ['by the byte order mark, which overrides the charset', utf16le(MARKED), 'utf-8', TEXT],
    ['by the byte order mark, which overrides an unknown charset', utf8(MARKED), 'x-any', TEXT],
    [
      'by the byte order mark, which overrides the XML declaration',
      utf8(`\uFEFF${declare('x')}`),
      undefined,
      declare('x'),
    ],
    ['by the charset, which overrides the XML declaration', utf8(declare('x')), 'utf-8', declare('x')],
    ['an empty message', utf8(''), undefined, ''],
    [
      'a message with two byte order marks, removing the first',
      utf8('\uFEFF\uFEFF<a/>'),
      undefined,
      '\uFEFF<a/>',
    ],
  ];

  it.each(DECODED)('decodes %s', (_, bytes, charset, text) => {
    expect(decodeXml(bytes, charset)).toBe(text);
  });

  const INVALID: Case[] = [
    ['bytes that are not UTF-8', LATIN_1, undefined, 'The message is not valid UTF-8.'],
    ['bytes that are not UTF-8 by the charset', LATIN_1, 'utf-8', 'not valid UTF-8'],
    [
      'bytes not UTF-8 after its mark',
      Buffer.concat([utf8('\uFEFF'), LATIN_1]),
      undefined,
      'not valid UTF-8',
    ],
    ['bytes beyond ASCII', utf8(TEXT), 'us-ascii', 'The message is not valid US-ASCII.'],
    ['bytes beyond declared ASCII', utf8(declare('US-ASCII') + 'é'), undefined, 'not valid US-ASCII'],
    ['UTF-16LE with half a character', utf16le(TEXT).subarray(0, 5), undefined, 'not valid UTF-16LE.'],
    ['UTF-16BE with half a character', utf16be(TEXT).subarray(0, 5), undefined, 'not valid UTF-16BE.'],
    ['UTF-16 declared in UTF-8', utf8(declare('UTF-16')), undefined, 'The XML declaration says UTF-16, but'],
    ['UTF-8 declared in UTF-16', utf16le(declare('UTF-8')), undefined, 'The XML declaration says UTF-8, but'],
    ['the other byte order declared', utf16le(declare('UTF-16BE')), undefined, 'says UTF-16BE, but'],
  ];

  it.each(INVALID)('refuses %s as invalid', (_, bytes, charset, message) => {
    expectRefusal(() => decodeXml(bytes, charset), 'invalid', message);
  });

  const padded = `<?xml ${' '.repeat(5000)}version="1.0" encoding="windows-1252"?>`;
  const UNSUPPORTED: Case[] = [
    ['another charset', PLAIN, 'iso-8859-1', '"iso-8859-1" is not supported: send UTF-8 or UTF-16.'],
    ['an empty charset', PLAIN, '', 'The encoding "" is not supported'],
    ['another declared encoding', utf8(declare('ISO-8859-1')), undefined, 'The encoding "ISO-8859-1" is not'],
    ['another declared encoding with its bytes', Buffer.from(declare('x') + 'é', 'latin1'), undefined, '"x"'],
    ['another declared encoding after white space', utf8(padded), undefined, '"windows-1252"'],
    ['another encoding declared in UTF-16', utf16le(declare('ISO-8859-1')), undefined, '"ISO-8859-1"'],
  ];

  it.each(UNSUPPORTED)('refuses %s as unsupported', (_, bytes, charset, message) => {
    expectRefusal(() => decodeXml(bytes, charset), 'invalid', message);
  });
});
