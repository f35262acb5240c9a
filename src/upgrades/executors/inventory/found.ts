// What an executor finds in a deployment before an upgrade, in a form that every executor can give.
import type { Performers } from '../steps.ts';
import type { Direction, JobEnd, Workload } from '../workloads.ts';

/** The label of a workload that names the container of the versions which it runs. */
export const containerLabel = 'steward/container';

export type FoundContainer = {
  readonly name: string;
  readonly image: string;
  readonly isInit: boolean;
};

export type FoundWorkload = {
  /** Its name in plans, for example `deployment/map-server`. */
  readonly path: string;
  /** The value of `containerLabel`. */
  readonly label: string | undefined;
  readonly containers: readonly FoundContainer[];
  /** Settings that keep new images from reaching all pods. */
  readonly obstacles: readonly string[];
  /** Why it is not healthy. */
  readonly illness: string | undefined;
  /** The containers that keep it from being healthy. Empty if it lacks something else, such as a node. */
  readonly sickContainers: readonly string[];
  readonly mark: JobMark | undefined;
};

/** What the job that has set the images of a workload last has recorded in it. Other clients can write it too. */
export type JobMark = {
  readonly jobId: string;
  /** Undefined if another client has written it. */
  readonly direction: Direction | undefined;
  readonly formerImages: ReadonlyMap<string, string>;
  /** What the workload had before, for each version from which a job has changed it. The oldest is first. */
  readonly records: readonly ImageRecord[];
  /** For messages. */
  readonly text: string;
};

/** The images of the containers while the version was installed. */
export type ImageRecord = {
  readonly version: string;
  readonly jobId: string;
  readonly images: ReadonlyMap<string, string>;
};

export type FoundTemplates = {
  readonly performers: Performers;
  /** The templates with their images. */
  readonly workloads: readonly Workload[];
  readonly problems: readonly string[];
  readonly notices: readonly string[];
};

export type FoundDeployment = {
  readonly namespace: string;
  /** Undefined if they cannot be read. */
  readonly workloads: readonly FoundWorkload[] | undefined;
  readonly problems: readonly string[];
  /** Whether the problem is a server that does not answer. */
  readonly isUnavailable?: boolean;
  readonly notices: readonly string[];
  /** How each job that a mark names has ended, by its id. */
  readonly jobEnds: ReadonlyMap<string, JobEnd>;
  readonly templates: FoundTemplates;
};
