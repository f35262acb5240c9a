// The server without the entries of changes, and without reading the token of the caller again in the transaction
// of a change. A baseline of bench/audit/cost.js.
import { TokenService } from '../../src/auth/token-service.ts';
import { Writer } from '../../src/app/stores/postgres-writer.ts';

const { update } = Writer.prototype;
Writer.prototype.update = function (rule, { tokens: _tokens, ...needs } = {}) {
  return update.call(this, rule, needs);
};
TokenService.prototype.identifyWithin = (_transaction, identity) => identity;
await import('./without-entries.js');
