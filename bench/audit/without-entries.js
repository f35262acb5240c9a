// The server without the entries of changes; everything else is the same. A baseline of bench/audit/cost.js.
import { AuditService } from '../../src/audit/audit-service.ts';

AuditService.prototype.newId = () => '';
AuditService.prototype.recordWithin = () => undefined;
await import('../../src/main.ts');
