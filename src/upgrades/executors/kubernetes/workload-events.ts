// Writes an Event for each workload that a job changes, so that `kubectl describe` shows what Steward did and why.
import type { CoreV1Event } from '@kubernetes/client-node';
import type { Runtime } from '../../../lib/runtime.ts';
import { toXmlText, truncate } from '../../../lib/text.ts';
import type { StepContext } from '../executor.ts';
import { hasStatus } from './client.ts';
import type { ClusterConnection } from './cluster.ts';
import { type ClusterWorkload, cutMessage } from './workload.ts';

type EventReason = 'UpgradeStarted' | 'UpgradeCompleted' | 'UpgradeFailed' | 'UpgradeReverted';

const component = 'steward';

/**
 * A step waits for its Event, so the time is short. Just after a restart the API server refuses Events for about a
 * second.
 */
const retryMs = 1_500;

/** The API server accepts names of 253 characters. */
const maxName = 200;

export class WorkloadEvents {
  readonly #connection: ClusterConnection;
  readonly #runtime: Pick<Runtime, 'now'>;
  #deniedJob: string | undefined;

  constructor(connection: ClusterConnection, runtime: Pick<Runtime, 'now'>) {
    this.#connection = connection;
    this.#runtime = runtime;
  }

  /**
   * Does not reject: a step does not fail because of its Event. After a refusal that lasts it writes no more for
   * that job.
   */
  async write(
    found: ClusterWorkload,
    reason: EventReason,
    message: string,
    { jobId, change }: Pick<StepContext, 'jobId' | 'change'>,
  ): Promise<void> {
    if (this.#deniedJob === jobId) return;
    const id = `${jobId.slice(0, 8)}-${change}.${reason.toLowerCase()}`;
    const event = this.#toEvent(found, reason, `${message} (job ${jobId})`, id);
    try {
      await this.#connection.withRetry({ retryMs }).createEvent(event);
    } catch (error) {
      if (hasStatus(error, 401, 403)) this.#deniedJob = jobId;
    }
  }

  /** The API server accepts one Event of a name, so a step that is repeated writes it once. */
  #toEvent(found: ClusterWorkload, reason: EventReason, message: string, id: string): CoreV1Event {
    const at = new Date(this.#runtime.now());
    const { kind, name, uid, resourceVersion } = found;
    const { namespace } = this.#connection;
    return {
      metadata: { namespace, name: `${truncate(name, maxName)}.${id}` },
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
