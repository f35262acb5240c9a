// Values that the forms about webhooks offer.
import { mayList, pathOfService, services } from '../../catalog/catalog.ts';
import type { Caller } from '../../lib/caller.ts';
import type { Reader } from '../../store/state.ts';

const maxSuggested = 200;

/** Only services that the caller may list. */
export function servicePaths(reader: Reader, caller: Caller): string[] {
  const paths: string[] = [];
  for (const service of reader.all(services)) {
    if (paths.length === maxSuggested) break;
    if (mayList(service, caller)) paths.push(pathOfService(service));
  }
  return paths.sort();
}
