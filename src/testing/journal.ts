// The journal: what clients sent and what they got, with secrets masked. It keeps the newest requests, up to a
// number and a size.
import type { JournalEntry, JournalMessage } from './control-client.ts';

/** What is known only when the request has been answered. */
type Outcome = 'status' | 'soapOperation' | 'fault' | 'faultElement' | 'request' | 'response';

/** An entry whose request may still run. */
export type OpenEntry = Omit<JournalEntry, Outcome> & { -readonly [Field in Outcome]: JournalEntry[Field] };

type JournalFilter = {
  readonly route?: ((route: string | null) => boolean) | undefined;
  readonly status?: number | undefined;
  readonly soapOperation?: string | undefined;
};

export const noMessage: JournalMessage = { headers: {}, body: '' };
export const maxKeptBodyBytes = 64 * 1024;
const maxEntries = 1000;
const maxBytes = 32 * 1024 ** 2;
/** What an entry takes besides its texts. */
const entryBytes = 512;

export class Journal {
  /** The entries with their sizes, oldest first. */
  readonly #sizes = new Map<OpenEntry, number>();
  #bytes = 0;
  #lastId = 0;

  add(entry: Omit<JournalEntry, 'id'>): OpenEntry {
    const added = { id: String((this.#lastId += 1)), ...entry };
    this.#measure(added);
    if (this.#sizes.size > maxEntries) this.#removeOldest();
    return added;
  }

  /** An entry has its answer. The oldest entries leave the journal if it has become too large. */
  complete(entry: OpenEntry): void {
    if (!this.#sizes.has(entry)) return;
    this.#measure(entry);
    while (this.#bytes > maxBytes) this.#removeOldest();
  }

  page(filter: JournalFilter, start: number, num: number): { requests: JournalEntry[]; total: number } {
    const found = this.dump().filter(
      ({ route, status, soapOperation }) =>
        (filter.route?.(route) ?? true) &&
        (filter.status === undefined || status === filter.status) &&
        (filter.soapOperation === undefined || soapOperation === filter.soapOperation),
    );
    return { requests: found.reverse().slice(start, start + num), total: found.length };
  }

  find(id: string): JournalEntry | undefined {
    return this.dump().find((entry) => entry.id === id);
  }

  clear(): void {
    this.#sizes.clear();
    this.#bytes = 0;
    this.#lastId = 0;
  }

  dump(): readonly OpenEntry[] {
    return [...this.#sizes.keys()];
  }

  load(entries: readonly JournalEntry[]): void {
    this.clear();
    for (const entry of entries) this.#measure({ ...entry });
    this.#lastId = Number(entries.at(-1)?.id ?? 0);
  }

  #measure(entry: OpenEntry): void {
    const size = bytesOf(entry);
    this.#bytes += size - (this.#sizes.get(entry) ?? 0);
    this.#sizes.set(entry, size);
  }

  #removeOldest(): void {
    const [oldest] = this.#sizes;
    if (!oldest) return;
    const [entry, size] = oldest;
    this.#bytes -= size;
    this.#sizes.delete(entry);
  }
}

function bytesOf({ path, request, response }: JournalEntry): number {
  const ofMessage = ({ headers, body }: JournalMessage) => 2 * body.length + JSON.stringify(headers).length;
  return entryBytes + path.length + ofMessage(request) + ofMessage(response);
}
