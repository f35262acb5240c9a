// Searches services by words. Each word must occur in the folder, name, type or description.
import { toNfc } from '../lib/text.ts';
import { type Service, pathOfService } from './catalog.ts';
import type { Listing } from './listing.ts';

export type SearchResult = { readonly folders: readonly string[]; readonly services: readonly Service[] };

export function searchListing(listing: Listing, query: string): SearchResult | undefined {
  const words = fold(query)
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return undefined;
  const containsAll = (text: string) => words.every((word) => text.includes(word));
  return {
    folders: listing.folders.filter((name) => containsAll(fold(name))),
    services: listing.services.filter((service) =>
      containsAll(fold(`${pathOfService(service)} ${service.description}`)),
    ),
  };
}

function fold(text: string): string {
  return toNfc(text).toLowerCase();
}
