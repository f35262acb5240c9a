// How the texts of variables are read: addresses, lists of them, and what is to fail.
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';

export function readPublicUrl(text: string, context: z.RefinementCtx): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!plain || !/^https?:$/.test(url.protocol)) {
    context.addIssue('must be an absolute http or https address without user, query or fragment');
    return z.NEVER;
  }
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

/** `NAME` fails whenever it is updated, `NAME:2` twice. */
export function readFailures(text: string, context: z.RefinementCtx): ReadonlyMap<string, number> {
  const failures = new Map<string, number>();
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [, name, times] = /^([A-Za-z0-9_.-]{1,128})(?::([1-9][0-9]{0,5}))?$/.exec(entry) ?? [];
    if (name === undefined) {
      context.addIssue(
        `must be a comma list of container names, each with how often it fails, such as MAP_SERVER:2; "${entry}" is none`,
      );
      return z.NEVER;
    }
    failures.set(name.toUpperCase(), times === undefined ? Infinity : Number(times));
  }
  return failures;
}

export function readCidrs(text: string, context: z.RefinementCtx): BlockList {
  const list = new BlockList();
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [address = '', bits] = entry.split('/');
    const version = isIP(address);
    const most = version === 4 ? 32 : 128;
    const length = bits === undefined ? most : /^[0-9]{1,3}$/.test(bits) ? Number(bits) : NaN;
    if (version === 0 || address.includes('%') || entry.split('/').length > 2 || !(length <= most)) {
      context.addIssue(
        `must be a comma list of addresses or CIDR ranges such as 10.0.0.0/8; "${entry}" is none`,
      );
      return z.NEVER;
    }
    list.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

export function isDatabaseUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return /^postgres(ql)?:$/.test(url?.protocol ?? '') && (url?.pathname.length ?? 0) > 1;
}

/** A comma list. */
export function readNames(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
