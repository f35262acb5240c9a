// Generates bytes that are almost valid: repeated patterns, and mutations of valid bodies.
// Bytes are strings with one character per byte, because fast-check prints and shrinks strings well.
import fc from 'fast-check';

export const bytesOf = (text: string): string => Buffer.from(text).toString('latin1');

/** One of the texts in a list separated by ¦, as bytes. */
export const among = (list: string): fc.Arbitrary<string> => fc.constantFrom(...list.split('¦').map(bytesOf));

/** `usual`, `times` as often as each of the others. */
export function mostly<T, U>(
  times: number,
  usual: fc.Arbitrary<T>,
  ...others: fc.Arbitrary<U>[]
): fc.Arbitrary<T | U> {
  const rare = others.map((arbitrary) => ({ weight: 1, arbitrary }));
  return fc.oneof<fc.WeightedArbitrary<T | U>[]>({ weight: times, arbitrary: usual }, ...rare);
}

/** Separators, escapes and unclosed brackets: repeated many times, they make a naive parser slow. */
const unit = among(
  ' ¦\t¦,¦;¦=¦"¦\'¦&¦%¦+¦/¦\\¦.¦-¦_¦:¦?¦#¦*¦<¦a¦é¦1¦0¦\0¦\r\n¦\n¦[¦]¦{¦}¦%&¦%=%&¦a=¦a&¦=&¦&amp;¦%00¦%ff&¦' +
    '%2e¦%2F¦../¦./¦//¦<a>¦</a>¦<a/>¦<!--¦-->¦]]>¦<![CDATA[¦a:¦ a=""¦&#¦&#x¦{"a":¦["",¦\\u¦--¦--x\r\n¦; a=b¦' +
    'q=0.1,¦ ,¦, ¦ =¦😀¦\u0300',
);

const repeated = fc
  .tuple(unit, fc.constantFrom(70, 300, 1030, 4100, 8000, 15_000))
  .map(([bytes, length]) => bytes.repeat(Math.ceil(length / bytes.length)).slice(0, length));

/** Combining marks in the wrong order: a naive normalisation needs quadratic time to sort them. */
const unsortedMarks = fc.constantFrom(50, 3900).map((count) => {
  return bytesOf(`a${'\u0315'.repeat(count)}${'\u0300'.repeat(count)}`);
});

/** A repeated pattern of up to 15,000 bytes. */
export const stretch: fc.Arbitrary<string> = mostly(5, repeated, unsortedMarks);

const anyByte = fc.nat({ max: 255 }).map((code) => String.fromCharCode(code));
const badUtf8 = fc.constantFrom(
  '\xff',
  '\xc0\x80',
  '\xed\xa0\x80',
  '\xf4\x90\x80\x80',
  '\xe2\x82',
  '\xfe\xff',
);

type Mutation = { kind: string; place: number; length: number; put: string };

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: among('insert¦insert¦replace¦flip¦delete¦double¦swap¦cut¦behead'),
  place: fc.nat({ max: 9999 }),
  length: fc.constantFrom(1, 1, 2, 3, 8, 40, 400),
  put: mostly(4, fc.oneof(unit, anyByte), badUtf8, stretch),
});

function mutate(bytes: string, { kind, place, length, put }: Mutation): string {
  const at = Math.floor((place / 9999) * bytes.length);
  const before = bytes.slice(0, at);
  const part = bytes.slice(at, at + length);
  const after = bytes.slice(at + length);
  switch (kind) {
    case 'insert':
      return before + put + part + after;
    case 'replace':
      return before + put + after;
    case 'flip':
      return (
        before + part.replace(/./gs, (c) => String.fromCharCode(c.charCodeAt(0) ^ (1 << (place % 8)))) + after
      );
    case 'delete':
      return before + after;
    case 'double':
      return before + part + part + after;
    case 'swap':
      return before + after.slice(0, length) + part + after.slice(length);
    case 'behead':
      return part + after;
    default:
      return before;
  }
}

/** Applies one to three mutations. */
export function mutated(bytes: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const mutations = fc.array(mutation, { minLength: 1, maxLength: 3 });
  return fc.tuple(bytes, mutations).map(([good, list]) => list.reduce(mutate, good));
}

export const anyBytes: fc.Arbitrary<string> = fc.oneof(
  stretch,
  fc.array(fc.oneof(anyByte, badUtf8, unit), { maxLength: 40 }).map((list) => list.join('')),
);
