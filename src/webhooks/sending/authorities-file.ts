// Reads WEBHOOK_CA_FILE, the certificates of authorities that receivers may have theirs from.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';

type Authorities = { readonly authorities: readonly string[] } | { readonly problems: readonly string[] };

export async function readAuthorities(path: string | undefined): Promise<Authorities> {
  if (path === undefined) return { authorities: [] };
  try {
    return parseAuthorities(await readFile(path, 'utf8'));
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { problems: [`WEBHOOK_CA_FILE cannot be read: ${code}.`] };
  }
}

const begin = '-----BEGIN CERTIFICATE-----';
const end = '-----END CERTIFICATE-----';

/** Text around the certificates is ignored: many files have comments. */
export function parseAuthorities(text: string): Authorities {
  const found = text
    .split(begin)
    .slice(1)
    .map((rest) => begin + rest.slice(0, rest.indexOf(end) + end.length));
  if (found.length === 0)
    return { problems: ['WEBHOOK_CA_FILE must contain certificates in PEM format (BEGIN CERTIFICATE).'] };
  const problems = found.flatMap((pem, index) =>
    isCertificate(pem) ? [] : `WEBHOOK_CA_FILE: the certificate ${index + 1} cannot be read.`,
  );
  return problems.length > 0 ? { problems } : { authorities: found };
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== '';
  } catch {
    return false;
  }
}
