// References to images: which registry an image is pulled from, what it is called there, and how a checksum pins it.

/**
 * `registry.example.com:5000/team/apps:1.0@sha256:…` has the prefix `registry.example.com:5000/team`, the name `apps` and the
 * version `:1.0@sha256:…`.
 */
type Reference = {
  readonly prefix: string;
  readonly name: string;
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

export function nameOfImage(image: string): string {
  return parseReference(image).name;
}

/**
 * The first part of a reference is a registry if it has a dot or a port, or is localhost. Otherwise it belongs to
 * the path.
 */
function hasRegistry({ prefix }: Reference): boolean {
  const [first = ''] = prefix.split('/', 1);
  return /[.:]/.test(first) || first === 'localhost';
}

export function locateImage(image: string, current: string, registry: string | undefined): string {
  const wanted = parseReference(image);
  if (hasRegistry(wanted)) return image;
  const running = parseReference(current);
  const base = hasRegistry(running) ? running.prefix : (registry ?? running.prefix);
  if (base === '' || base === wanted.prefix) return image;
  // Without this, the result would repeat a path that both images have.
  const path = `/${wanted.prefix}`;
  return `${wanted.prefix !== '' && base.endsWith(path) ? base.slice(0, -path.length) : base}/${image}`;
}

/** A checksum that is no digest, such as N/A, does not pin the image. */
export function pinImage(image: string, checksum: string): string {
  return isDigest(checksum) && !image.includes('@') ? `${image}@${checksum}` : image;
}

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

/** What nodes ask a registry for. */
export type RegistryReference = {
  /** In lower case, with the port if the image names one. */
  readonly host: string;
  readonly repository: string;
  /** The digest if the image has one, or else the tag: nodes pull by the digest. */
  readonly version: string;
};

const component = '[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*';
const repositoryPattern = new RegExp(`^${component}(?:/${component})*$`);
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const digestPattern = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/;

export function isRegistryHost(host: string): boolean {
  return hostPattern.test(host) && URL.canParse(`https://${host}`);
}

/** The name of one registry in images, and in the file of `docker login`, is not its host. */
export function hostOfRegistry(name: string): string {
  return ['docker.io', 'index.docker.io'].includes(name) ? 'registry-1.docker.io' : name;
}

export function parseRegistryReference(image: string): RegistryReference | 'no-registry' | 'invalid' {
  if (!hasRegistry(parseReference(image))) return 'no-registry';
  const [, host = '', repository = '', tag, digest] =
    /^([^/]+)\/([^:@]+)(?::([^@]*))?(?:@(.*))?$/.exec(image) ?? [];
  const isValid =
    isRegistryHost(host.toLowerCase()) &&
    repositoryPattern.test(repository) &&
    (tag === undefined || tagPattern.test(tag)) &&
    (digest === undefined || digestPattern.test(digest));
  if (!isValid) return 'invalid';
  return { host: hostOfRegistry(host.toLowerCase()), repository, version: digest ?? tag ?? 'latest' };
}
