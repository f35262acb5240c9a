// The server without the entries of changes, and without reading the token of the caller again in the transaction
// of a change. A baseline of bench/audit/cost.js.
import { TokenService } from '../../src/auth/token-service.ts';

TokenService.prototype.identifyWithin = (_transaction, identity) => identity;
await import('./without-entries.js');
