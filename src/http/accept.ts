// Content negotiation: whether a client prefers a page to JSON.
import Negotiator from 'negotiator';

/** The order of the types matters: a client that accepts anything gets JSON. */
export function prefersHtml(accept: string | undefined): boolean {
  // Most programs send one of these.
  if (accept === undefined || accept === '*/*') return false;
  const preferred = new Negotiator({ headers: { accept } }).mediaTypes(['application/json', 'text/html']);
  return preferred[0] === 'text/html';
}
