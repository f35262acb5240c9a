// References to images: which registry they are taken from, and how a checksum pins them.

/** `registry.example.com:5000/team/apps:1.0@sha256:…` in its parts. */
type Reference = {
  /** Registry and path in front of the last name, without a slash at its end; empty where there is none. */
  readonly prefix: string;
  readonly name: string;
  /** Tag and digest as they stand, with their marks. */
  readonly version: string;
};

function readReference(image: string): Reference {
  const slash = image.lastIndexOf('/', image.includes('@') ? image.indexOf('@') : undefined);
  const rest = image.slice(slash + 1);
  const end = rest.search(/[:@]/);
  return {
    prefix: slash < 0 ? '' : image.slice(0, slash),
    name: end < 0 ? rest : rest.slice(0, end),
    version: end < 0 ? '' : rest.slice(end),
  };
}

/** The name of what is in an image, wherever it is taken from. */
export function nameOfImage(image: string): string {
  return readReference(image).name;
}

/** The first part of a reference is a registry where it can be no path: it has a dot or a port, or is localhost. */
function hasRegistry({ prefix }: Reference): boolean {
  const [first = ''] = prefix.split('/', 1);
  return /[.:]/.test(first) || first === 'localhost';
}

/**
 * Where an image of a version is taken from: its own registry; else the registry and the path that the container has now; else
 * the given registry. A path that both have is not repeated.
 */
export function locateImage(image: string, current: string, registry: string | undefined): string {
  const wanted = readReference(image);
  if (hasRegistry(wanted)) return image;
  const present = readReference(current);
  const base = hasRegistry(present) ? present.prefix : (registry ?? present.prefix);
  if (base === '' || base === wanted.prefix) return image;
  const path = `/${wanted.prefix}`;
  return `${wanted.prefix !== '' && base.endsWith(path) ? base.slice(0, -path.length) : base}/${image}`;
}

/** A checksum `sha256:…` pins the image; any other says nothing. */
export function pinImage(image: string, checksum: string): string {
  return isDigest(checksum) && !image.includes('@') ? `${image}@${checksum}` : image;
}

/** What is wrong with what a version says of one image. */
export function findFault(image: string, checksum: string): string | undefined {
  if (!/^sha256:/i.test(checksum)) return undefined;
  if (!isDigest(checksum))
    return `its checksum ${checksum} is no digest: sha256: and 64 digits of 0 to 9 and a to f.`;
  return image.includes('@') && !image.endsWith(`@${checksum}`)
    ? `its image ${image} and its checksum ${checksum} differ.`
    : undefined;
}

function isDigest(checksum: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(checksum);
}
