// Generates values for the fields of the directories: valid, just past the limits, and random. All are bytes.
import fc from 'fast-check';
import { type Field, choicesOf, describeField } from '../../src/rest/fields.ts';
import { laterVersions, freshRelease } from '../kit/sample-manifest.ts';
import { password } from '../kit/server.ts';
import { releaseOf } from '../kit/versions.ts';
import { among, anyBytes, bytesOf, mostly, mutated, stretch } from './fuzz-bytes.ts';

/** The ids that the fake runtime generates, in order. */
export const ids = Array.from({ length: 12 }, (_, index) => `id-${index + 1}`).join('¦');

const versionIds = [...laterVersions.map(({ id }) => id), freshRelease.id, 'pat_x', 'rel_x', 'nothing'];
const references = versionIds.map((id) => JSON.stringify({ id })).join('¦');

/** A minimal manifest with versions that a fresh deployment can be upgraded to. */
const manifest = {
  versions: [
    {
      id: 'pat_x',
      type: 'patch',
      version: '10.9.1',
      build: '1500',
      name: 'X',
      description: 'x',
      releaseBuild: '1234',
      previousBuild: '1234',
      isMandatoryUpdate: false,
      url: 'https://x.example/',
      containers: [{ name: 'A_1', image: 'a:1', checksum: 'x' }],
    },
    {
      ...releaseOf('rel_x', '1600'),
      newLicensesRequired: false,
      released: 1_700_000_000_000,
      releaseNotes: 'x',
      containers: [{ name: 'A_1', image: 'a:2' }],
      newContainers: [{ name: 'B_1', image: 'b:1' }],
      userForm: [
        {
          groupInputs: [
            { id: 'updateToLatestPatch', type: 'Boolean', value: true, required: true },
            { id: 'x', type: 'File', validFileExtensions: ['json'], value: '' },
            { id: 'volumesConfig', type: 'JSON', value: {} },
            { id: 'y', type: 'Text', value: 'x', description: 'y' },
          ],
        },
      ],
    },
  ],
};

const settings = {
  userInputs: [
    { seqNum: 0, id: 'updateToLatestPatch', type: 'Boolean', value: true, newfield: '' },
    { seqNum: 1, id: 'licenseUpload', type: 'File', value: 'id-1' },
    { seqNum: 2, id: 'volumesConfig', type: 'JSON', value: { a: {} } },
  ],
};

/** Deeply nested JSON. */
const deep = fc
  .tuple(among('[¦{"a":¦[{"id":¦{"id":[¦["",{"":'), fc.constantFrom(33, 4000, 30_000))
  .map(([open, depth]) => {
    const close = open
      .replace(/[^[{]/g, '')
      .split('')
      .reverse()
      .map((c) => (c === '[' ? ']' : '}'));
    return `${open.repeat(depth)}0${close.join('').repeat(depth)}`;
  });

/** JSON that is well-formed and malicious. */
const bomb = fc.oneof(
  deep,
  deep,
  among(
    '1e400¦-0¦123456789012345678901234567890¦"\\ud800"¦"\\u0000"¦"\\udc00\\ud800"¦"\\u2028"¦"../.."¦"<b>\'&"',
  ),
  among(
    '{"__proto__":{"a":1}}¦{"constructor":{"prototype":{}}}¦{"id":"a","id":"b"}¦{"toString":1}¦{}¦[]¦null¦true¦0¦""¦" "',
  ),
  fc.json({ maxDepth: 3 }).map(bytesOf),
);

/** JSON strings with unusual characters, which a field accepts unless it checks for them. */
const oddText = among(
  '"\\ud800"¦"\\u0000"¦"a\\u0000b"¦"\\u001b[0m"¦"\\u2028"¦"../.."¦"<b>\'&\\""¦" "¦"__proto__"¦"é"¦"\\ufffe"¦"a b/c?d#e%"',
);

/** The JSON with one or two values replaced by bombs, or some texts replaced by odd ones. */
function bombed(json: object): fc.Arbitrary<string> {
  const parts = JSON.stringify(json)
    .split(/((?<=[:,[])(?:"[^"]*"|true|false|\d+|\{\})(?=[,\]}]))/)
    .map(bytesOf);
  const places = parts.flatMap((_, index) => (index % 2 === 1 ? [index] : []));
  const texts = places.filter((index) => parts[index]?.startsWith('"'));
  const put = (changes: readonly (readonly [number, string])[]) => {
    const changed = new Map(changes);
    return parts.map((part, index) => changed.get(index) ?? part).join('');
  };
  return fc.oneof(
    fc.array(fc.tuple(fc.constantFrom(...places), bomb), { minLength: 1, maxLength: 2 }).map(put),
    fc
      .array(fc.tuple(fc.constantFrom(...(texts.length > 0 ? texts : places)), oddText), {
        minLength: 1,
        maxLength: 4,
      })
      .map(put),
  );
}

/** The valid JSON in two of five cases. */
const jsonLike = (json: object) => {
  const good = fc.constant(bytesOf(JSON.stringify(json)));
  return mostly(2, good, bombed(json), bombed(json), mutated(good));
};

/** Valid values by the name of the field. */
const known: Record<string, fc.Arbitrary<string>> = {
  username: among('member¦publisher¦administrator¦fuzz¦Fuzz'),
  password: among(`${password}¦another password¦short`),
  folderName: among('/¦Maps¦Tools¦New¦Größe¦ＡＢ¦new'),
  serviceName: among('World¦New¦a.b¦Ünder¦𐀀'),
  type: among('MapServer¦X¦GPServer'),
  parentType: among('MapServer¦X'),
  service: among('World.MapServer¦Maps/Roads.MapServer¦World.MapServer¦New/New.X¦a/b/c.d'),
  name: among('hook¦Hook¦other¦<i>¦third'),
  hookUrl: mostly(
    4,
    among('https://hooks.example/in'),
    among('http://[::1]/¦http://127.1/¦http://u@x.example/¦http://0x7f.1'),
  ),
  changeTypes: mostly(3, among('*¦A,B¦["A"]'), among('[[]]¦{"length":1}¦["a",null]¦[1e5]¦[')),
  changeType: among('Tested¦Measured'),
  eventId: among('e1¦e2¦-'),
  signatureKey: mostly(2, among(`whsec_${Buffer.alloc(24).toString('base64')}`), among('whsec_¦whsec_AA==')),
  ip: among('127.0.0.1¦::ffff:1.2.3.4¦1.2.3¦fe80::1%eth0'),
  referer: among('http://x.example/¦x¦http://['),
  next: among('/admin¦/admin/uploads/{itemID}¦//x¦/\\x¦/a?b=%7BitemID%7D#c¦/./..//x¦/é'),
  jobId: among(ids),
  token: among('token-of-the-member¦form_x¦x'),
  versionManifest: mostly(
    6,
    among(references),
    bombed({ id: 'x' }),
    oddText.map((text) => `{"id":${text}}`),
  ),
  upgradeId: mostly(6, among(references), bombed({ id: 'x' })),
  upgradeSettings: mostly(3, jsonLike(settings), among('{}¦{"userInputs":[]}')),
  manifestFile: jsonLike(manifest),
  versionManifestFile: jsonLike(manifest),
  payload: mostly(2, among('{}¦{"a":"é"}'), bombed({ a: 1, b: ['x'] })),
  isReadOnly: among('false¦false¦False¦true'),
  wait: among('0¦0¦1¦60'),
};

const numbers =
  '0¦-1¦1¦-0¦00¦1.0¦1e1¦0x1¦NaN¦Infinity¦ 5 ¦１¦٣¦+1¦¦2147483648¦9007199254740993¦999999999999999¦-999999999999999¦' +
  `1000000000000000¦${'9'.repeat(400)}`;

/** Values at the limits of the field and just past them. */
function valuesFor(field: Field): fc.Arbitrary<string> {
  const description = describeField(field);
  const { control, schema } = description;
  const choices = choicesOf(description);
  if (choices)
    return mostly(4, among(choices.join('¦')), among(choices.join('¦').toUpperCase()), among('other¦'));
  if (schema.type === 'integer') {
    const { minimum: from = NaN, maximum: to = NaN } = schema;
    return mostly(
      3,
      among([from, to, Math.floor((from + to) / 2)].join('¦')),
      among(`${from - 1}¦${to + 1}¦${numbers}`),
    );
  }
  if (control === 'file') return among('{}¦{"license":true}¦x¦');
  const { minLength = 1, maxLength = 100 } = schema;
  const [least, most] = [Math.max(minLength, 1), Math.min(maxLength, 4000)];
  const lengths = mostly(4, fc.constantFrom(least, most), fc.constantFrom(least - 1, most + 1));
  return fc.tuple(among('x¦é¦😀¦A¦1'), lengths).map(([character, length]) => character.repeat(length));
}

export const wild: fc.Arbitrary<string> = fc.oneof(
  anyBytes,
  fc.string({ unit: 'grapheme', maxLength: 30 }).map(bytesOf),
  bomb,
  among(numbers),
  among('¦ ¦\0¦\u202e¦\ufeff¦\u2028¦__proto__¦constructor¦../..¦${x}'),
);

export function valueOf(name: string, field: Field): fc.Arbitrary<string> {
  const good = known[name] ?? valuesFor(field);
  return mostly(25, good, valuesFor(field), mutated(good), wild, stretch, stretch);
}
