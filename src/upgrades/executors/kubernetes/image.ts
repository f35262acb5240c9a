// References to images: which registry an image is pulled from, and how a checksum pins it.

/** `registry.example.com:5000/team/apps:1.0@sha256:…` in its parts. */
type Reference = {
  /** Registry and path before the last name, without the slash; may be empty. */
  readonly prefix: string;
  readonly name: string;
  /** Tag and digest with `:` and `@`; may be empty. */
  readonly version: string;
};

function parseReference(image: string): Reference {
  const slash = image.lastIndexOf('/', image.includes('@') ? image.indexOf('@') : undefined);
  const rest = image.slice(slash + 1);
  const end = rest.search(/[:@]/);
  return {
    prefix: slash < 0 ? '' : image.slice(0, slash),
    name: end < 0 ? rest : rest.slice(0, end),
    version: end < 0 ? '' : rest.slice(end),
  };
}

/** The last name in the path of an image, without registry, tag and digest. */
export function nameOfImage(image: string): string {
  return parseReference(image).name;
}

/** The first part of a reference is a registry if it has a dot or a port, or is localhost; otherwise it belongs to the path. */
function hasRegistry({ prefix }: Reference): boolean {
  const [first = ''] = prefix.split('/', 1);
  return /[.:]/.test(first) || first === 'localhost';
}

/**
 * Completes an image of a version with a registry: its own; else registry and path of the container's current image; else the
 * given registry. A path that both have is not repeated.
 */
export function locateImage(image: string, current: string, registry: string | undefined): string {
  const wanted = parseReference(image);
  if (hasRegistry(wanted)) return image;
  const running = parseReference(current);
  const base = hasRegistry(running) ? running.prefix : (registry ?? running.prefix);
  if (base === '' || base === wanted.prefix) return image;
  const path = `/${wanted.prefix}`;
  return `${wanted.prefix !== '' && base.endsWith(path) ? base.slice(0, -path.length) : base}/${image}`;
}

/** A checksum `sha256:…` pins the image; any other is ignored. */
export function pinImage(image: string, checksum: string): string {
  return isDigest(checksum) && !image.includes('@') ? `${image}@${checksum}` : image;
}

/** Why image and checksum of a container do not fit together. */
export function findImageProblem(image: string, checksum: string): string | undefined {
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
