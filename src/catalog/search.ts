// Finding services by words: every word must stand somewhere in the folder, name, type or description.
import { toNfc } from '../lib/text.ts';
import { type Service, pathOfService } from './catalog.ts';
import type { Listing } from './listing.ts';

export type SearchResult = { readonly folders: readonly string[]; readonly services: readonly Service[] };

/** Undefined where nothing is looked for. Case does not matter, nor how a letter with an accent was typed. */
export function searchListing(listing: Listing, query: string): SearchResult | undefined {
  const words = fold(query)
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return undefined;
  const holdsAll = (text: string) => words.every((word) => text.includes(word));
  return {
    folders: listing.folders.filter((name) => holdsAll(fold(name))),
    services: listing.services.filter((service) =>
      holdsAll(fold(`${pathOfService(service)} ${service.description}`)),
    ),
  };
}

function fold(text: string): string {
  return toNfc(text).toLowerCase();
}
