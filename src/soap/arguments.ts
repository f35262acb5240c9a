// The arguments of an operation: the children of its element.
import { ServiceError } from '../lib/errors.ts';
import { shortName, refuseText } from './envelope.ts';
import type { XmlElement } from './xml/reader.ts';

export type Arguments = Readonly<Record<string, string | undefined>>;

/** Clients send arguments with and without a namespace, so only the local name counts. */
export function bindArguments(payload: XmlElement, names: readonly string[]): Arguments {
  refuseText(payload);
  const bound: Record<string, string | undefined> = {};
  for (const child of payload.children) {
    if (!names.includes(child.name)) {
      const known = names.length > 0 ? `its arguments are ${names.join(', ')}` : 'it takes none';
      throw new ServiceError('invalid', `${payload.name} has no argument ${shortName(child)}; ${known}.`, {
        element: shortName(child),
      });
    }
    if (Object.hasOwn(bound, child.name)) {
      throw new ServiceError('invalid', `The argument ${child.name} is given more than once.`, {
        element: child.name,
      });
    }
    const [inner] = child.children;
    if (inner)
      throw new ServiceError(
        'invalid',
        `The argument ${child.name} must be text; it holds a ${shortName(inner)}.`,
        { element: shortName(inner) },
      );
    bound[child.name] = isNil(child) ? undefined : child.text;
  }
  return bound;
}

function isNil({ attributes }: XmlElement): boolean {
  return attributes.some(
    ({ namespace, name, value }) =>
      namespace.endsWith('/XMLSchema-instance') &&
      ['nil', 'null'].includes(name) &&
      ['true', '1'].includes(value.trim()),
  );
}
