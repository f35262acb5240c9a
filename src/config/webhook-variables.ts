// The variables of webhooks.
import * as z from 'zod';
import { headerNameRule, isHeaderName } from '../webhooks/sending/headers.ts';
import { addressRanges, integerText } from './value-schemas.ts';

export const webhookVariables = {
  WEBHOOK_ALLOW_CIDRS: addressRanges.describe(
    'The loopback, private and other special addresses that webhooks may use: a comma-separated list of addresses or CIDR ranges. ' +
      'An IPv6 range that covers ::ffff:0:0/96, such as ::/0, also covers all of IPv4.',
  ),
  WEBHOOK_CA_FILE: z
    .string()
    .optional()
    .describe(
      'A file with the certificates of authorities that receivers may have their certificates from, in PEM format. They are trusted in ' +
        'addition to the built-in authorities of Node.js; NODE_EXTRA_CA_CERTS then does not apply to receivers. Steward reads the file at start.',
    ),
  LEGACY_SIGNATURE_HEADER: z
    .string()
    .refine(isHeaderName, `must be ${headerNameRule}`)
    .optional()
    .describe(
      'The name of a header with a second signature, for receivers that check the body alone: sha256= and the base64 of HMAC-SHA-256 over ' +
        'the body, with the current key. Default: no such header.',
    ),
  WEBHOOK_CONCURRENCY: integerText(1, 1000)
    .default(128)
    .describe('How many webhook requests one process sends at the same time.'),
  WEBHOOK_HISTORY: integerText(0, 10_000)
    .default(100)
    .describe('How many delivered and redelivered deliveries are kept for each webhook.'),
  WEBHOOK_RECOVERABLE: integerText(0, 1_000_000)
    .default(10_000)
    .describe(
      'How many failed, missed and discarded deliveries are kept for each webhook until they are redelivered. ' +
        'Without STORE_URL, at most 64 MiB of all webhooks together.',
    ),
  WEBHOOK_MAX_PENDING: integerText(1, 10_000_000)
    .default(100_000)
    .describe('How many deliveries may be pending before the server refuses to publish events.'),
  WEBHOOK_MAX_PENDING_BYTES: integerText(1, 1024 ** 4)
    .optional()
    .describe(
      'How many bytes the payloads of pending deliveries may have together before the server refuses to publish events. ' +
        'A payload counts once for each delivery. Default: 268435456 (256 MiB) with STORE_URL, else 67108864 (64 MiB).',
    ),
  MAX_EVENT_IDS: integerText(1, 1_000_000_000)
    .default(100_000)
    .describe(
      'Without STORE_URL: how many ids of published events are remembered. Each is remembered for 24 hours; beyond this number, the ' +
        'server refuses to publish events with an id.',
    ),
};
