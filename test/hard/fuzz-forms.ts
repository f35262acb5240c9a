// Generates the fields of an operation as an urlencoded or multipart body, valid and malformed.
import fc from 'fast-check';
import { type Fields, describeField } from '../../src/rest/fields.ts';
import { among, anyBytes, bytesOf, mostly, mutated, stretch } from './fuzz-bytes.ts';
import { valueOf, wild } from './fuzz-values.ts';

/** Names and values, both as bytes. */
export type Pairs = readonly (readonly [string, string])[];

export type FormBody = { type: string | undefined; body: string };

const extra = fc.tuple(
  mostly(6, among('f¦token¦next¦__proto__¦constructor¦toString¦¦x¦f ¦é¦\0¦hasOwnProperty'), wild),
  mostly(2, among('json¦html¦pjson¦HTML¦ json ¦xml¦'), wild),
);

/** Required fields are rarely missing. Some fields are repeated or unknown. */
export function pairsOf(fields: Fields): fc.Arbitrary<Pairs> {
  const own = Object.entries(fields).map(([name, field]) => {
    const given = valueOf(name, field).map((value) => [bytesOf(name), value] as const);
    return mostly(describeField(field).isRequired ? 30 : 2, given, fc.constant(undefined));
  });
  const extras = mostly(8, fc.constant([]), fc.array(extra, { maxLength: 3 }));
  const twice = mostly(30, fc.constant(-1), fc.nat({ max: 9 }));
  return fc.tuple(fc.tuple(...own), extras, twice).map(([given, more, again]) => {
    const pairs = [...given.filter((pair) => pair !== undefined), ...more];
    const repeated = pairs[again];
    return repeated ? [...pairs, repeated] : pairs;
  });
}

/** `plain` matches the characters that are not escaped. An address must be ASCII; a body may hold any bytes. */
export function encodePairs(pairs: Pairs, plain = /[A-Za-z0-9._~*-]/): string {
  const escape = (c: string) =>
    plain.test(c) ? c : `%${c.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`;
  const encode = (bytes: string) => bytes.replace(/./gs, escape);
  return pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
}

/** Removes the characters that a header must not contain. */
export const toHeader = (bytes: string): string => bytes.replace(/[\0\r\n]/g, ' ');

const urlencodedType = mostly(
  20,
  fc.constant('application/x-www-form-urlencoded'),
  among(
    'application/x-www-form-urlencoded; charset=utf-8¦APPLICATION/X-WWW-FORM-URLENCODED¦application/json¦¦x¦text/xml¦*',
  ),
  among('application/x-www-form-urlencoded, x¦application/x-www-form-urlencodedx¦*/*¦ ¦;¦a/b;c'),
  stretch.map((bytes) => `application/x-www-form-urlencoded;${toHeader(bytes)}`),
);

export function urlencodedBody(pairs: fc.Arbitrary<Pairs>): fc.Arbitrary<FormBody> {
  const encoded = pairs.map((list) => encodePairs(list, /[^\0-\x20%&+=]/));
  return fc.record({
    type: urlencodedType,
    body: mostly(12, encoded, mutated(encoded), mutated(encoded), anyBytes),
  });
}

/** The parameters of Content-Disposition that make a part a file. */
const file = mostly(
  10,
  among('¦; filename="license.json"'),
  among(
    '; filename=""¦; filename="../../x"¦; filename="C:\\x\\y.json"¦; filename=x¦; filename="x¦; filename¦; filename="\\"',
  ),
  among(
    '; filename*=UTF-8\'\'%e2%82%ac¦; filename*=x\'\'%ff¦; filename*=utf-8\'¦; filename="a\0b"¦; filename=" "¦; FILENAME="x"',
  ),
  among('; filename="a"; filename="b"¦; filename*0="a"; filename*1="b"¦; name="f"¦; filename="\u202e"'),
  fc.constant('; filename="\xff\xfe"'),
  stretch.map((bytes) => `; filename="${bytes}"`),
);

/** Other headers of a part. */
const more = mostly(
  20,
  fc.constant(''),
  among(
    'Content-Type: text/plain; charset=utf-16\r\n¦Content-Type: application/json\r\n¦Content-Type:\r\n¦: x\r\n¦x\r\n¦ x\r\n',
  ),
  among(
    'Content-Type: multipart/mixed; boundary=abc\r\n¦Content-Type: text/plain; charset="x\r\n¦a: b\n¦\n¦a: b\r¦Content-Type: a/b\0\r\n',
  ),
  among(
    'Content-Transfer-Encoding: base64\r\n¦Content-Transfer-Encoding: quoted-printable\r\n¦Content-Length: 5\r\n¦__proto__: x\r\n',
  ),
  among('Content-Disposition: form-data; name="x"\r\n¦Content-Disposition: attachment\r\n¦é: é\r\n'),
  stretch.map((bytes) => `Content-Type: text/plain; ${bytes}\r\n`),
);

const heads = fc.array(fc.record({ file, more }), { minLength: 8, maxLength: 8 });

const boundary = mostly(
  20,
  fc.constant('xyz'),
  among(`¦-¦--¦"¦a b¦'()+_,-./:=?¦${'x'.repeat(70)}¦${'x'.repeat(71)}¦é`),
);

const oddType = among(
  'multipart/form-data; boundary="xyz"¦multipart/form-data¦multipart/form-data; boundary=¦multipart/mixed; boundary=xyz¦' +
    'MULTIPART/FORM-DATA;BOUNDARY=xyz; charset=x¦multipart/form-data; boundary=other¦multipart/form-data; boundary=xyz; boundary=x¦' +
    `multipart/form-data; ${'a=b;'.repeat(3000)} boundary=xyz¦multipart/form-data; boundary*=x''xyz¦multipart/form-data, x`,
);

export function multipartBody(pairs: fc.Arbitrary<Pairs>): fc.Arbitrary<FormBody> {
  const whole = fc.tuple(pairs, heads, boundary).map(([list, given, mark]) => {
    const written = list.map(([name, value], index) => {
      const head = given[index % given.length];
      return `--${mark}\r\nContent-Disposition: form-data; name="${name}"${head?.file ?? ''}\r\n${head?.more ?? ''}\r\n${value}\r\n`;
    });
    return { type: `multipart/form-data; boundary=${mark}`, body: `${written.join('')}--${mark}--\r\n` };
  });
  const body = whole.map((form) => form.body);
  const plain = fc.constant('multipart/form-data; boundary=xyz');
  return mostly(
    12,
    whole,
    ...[mutated(body), mutated(body), anyBytes].map((bytes) => fc.record({ type: plain, body: bytes })),
    fc.record({ type: oddType, body }),
    nested(body),
  );
}

/** A form nested in a part of a form, and forms with many parts. */
function nested(body: fc.Arbitrary<string>): fc.Arbitrary<FormBody> {
  return fc.tuple(body, fc.constantFrom(1, 3, 62, 63, 64, 65, 200)).map(([inner, times]) => {
    const head = (index: number) =>
      `--abc\r\nContent-Disposition: form-data; name="x${index}"\r\nContent-Type: multipart/mixed; boundary=xyz\r\n\r\n`;
    const parts = Array.from({ length: times }, (_, index) => `${head(index)}${times < 4 ? inner : ''}\r\n`);
    return { type: 'multipart/form-data; boundary=abc', body: `${parts.join('')}--abc--\r\n` };
  });
}
