// The server without the entries of changes; everything else is the same. A baseline of bench/audit/cost.js.
import { AuditService } from '../../dist/audit/audit-service.js';

AuditService.prototype.newId = () => '';
AuditService.prototype.recordWithin = () => undefined;
await import('../../dist/main.js');
