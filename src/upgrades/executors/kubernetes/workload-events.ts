// Writes an Event for each workload that a job changes, so that `kubectl describe` shows what Steward did and why.
import type { CoreV1Event } from '@kubernetes/client-node';
import { withTimeout } from '../../../lib/async.ts';
import { toXmlText, truncate } from '../../../lib/text.ts';
import type { Runtime } from '../../../runtime.ts';
import { hasStatus } from './client.ts';
import type { ClusterConnection } from './cluster.ts';
import { type ClusterWorkload, cutMessage } from './workload.ts';

export type EventReason = 'UpgradeStarted' | 'UpgradeCompleted' | 'UpgradeFailed' | 'UpgradeReverted';

const component = 'steward';

/** A step waits for its Event, so the time is short. */
const timeoutMs = 2_000;

/** The API server accepts names of 253 characters. */
const maxName = 200;

export class WorkloadEvents {
  readonly #connection: ClusterConnection;
  readonly #runtime: Pick<Runtime, 'now' | 'sleep'>;
  #deniedJob: string | undefined;

  constructor(connection: ClusterConnection, runtime: Pick<Runtime, 'now' | 'sleep'>) {
    this.#connection = connection;
    this.#runtime = runtime;
  }

  /** Does not reject: a step does not fail because of its Event. After one refusal it writes no more for that job. */
  async write(found: ClusterWorkload, reason: EventReason, message: string, jobId: string): Promise<void> {
    if (this.#deniedJob === jobId) return;
    const event = this.#toEvent(found, reason, `${message} (job ${jobId})`);
    const create = (signal: AbortSignal) =>
      this.#connection.withRetry({ retryMs: 0, signal }).createEvent(event);
    try {
      await withTimeout(this.#runtime, create, {
        ms: timeoutMs,
        message: 'the Event was not written in time.',
      });
    } catch (error) {
      if (hasStatus(error, 401, 403)) this.#deniedJob = jobId;
    }
  }

  #toEvent(found: ClusterWorkload, reason: EventReason, message: string): CoreV1Event {
    const at = new Date(this.#runtime.now());
    const { kind, name, uid, resourceVersion } = found;
    const { namespace } = this.#connection;
    return {
      metadata: {
        namespace,
        name: `${truncate(name, maxName)}.${at.getTime().toString(16)}.${reason.toLowerCase()}`,
      },
      involvedObject: { apiVersion: 'apps/v1', kind, namespace, name, uid, resourceVersion },
      type: reason === 'UpgradeFailed' ? 'Warning' : 'Normal',
      reason,
      message: cutMessage(toXmlText(message)) ?? '',
      source: { component },
      reportingComponent: component,
      reportingInstance: component,
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    };
  }
}
