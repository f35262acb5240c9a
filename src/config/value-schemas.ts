// Schemas of values that several variables share.
import { BlockList, isIP } from 'node:net';
import * as z from 'zod';

const pathRule = 'a path that begins with / and does not end with one, of letters, digits and . _ ~ -';
export const path = z
  .string()
  .regex(/^(\/[A-Za-z0-9._~-]+)+$/, `must be ${pathRule}, for example /admin`)
  .refine((value) => !/\/\.\.?(\/|$)/.test(value), 'must not contain . or .. as a segment');

export const name = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9]{0,31}$/, 'must be a letter and up to 31 letters or digits');

export const flag = z.stringbool({ truthy: ['true'], falsy: ['false'], error: 'must be true or false' });

export function integerText(from: number, to: number) {
  const rule = `must be an integer from ${from} to ${to}`;
  return z
    .string(rule)
    .regex(/^[0-9]{1,15}$/, rule)
    .transform(Number)
    .refine((value) => value >= from && value <= to, rule);
}

export const addressRanges = z
  .string()
  .transform(readAddressRanges)
  .default(() => new BlockList());

function readAddressRanges(text: string, context: z.RefinementCtx): BlockList {
  const list = new BlockList();
  for (const entry of splitList(text)) {
    const [address = '', bits] = entry.split('/');
    const version = isIP(address);
    const most = version === 4 ? 32 : 128;
    const length = bits === undefined ? most : /^[0-9]{1,3}$/.test(bits) ? Number(bits) : NaN;
    if (version === 0 || address.includes('%') || entry.split('/').length > 2 || !(length <= most)) {
      context.addIssue(
        `must be a comma list of addresses or CIDR ranges such as 10.0.0.0/8; "${entry}" is not one`,
      );
      return z.NEVER;
    }
    list.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** The entries of a comma-separated list. */
export function splitList(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}
