// A fake kubelet: writes the status of the pods of a namespace, which depends on the tags of their images.
import { type Container, type ContainerStatus, type Pod, seconds } from './objects.ts';

/** A patch is a strategic merge. */
export type Request = (method: string, path: string, body?: unknown) => Promise<unknown>;

export type Kubelet = {
  /** From now on images whose tag contains this are good. */
  heal: (tagPart: string) => void;
  /**
   * The programs of images whose tag contains this have ended at that time. They run again, and without a readiness probe
   * they are ready again, unless they wait for their next start.
   */
  crash: (tagPart: string, options?: { at?: number; isDown?: boolean }) => void;
  /** From now on the status of the pod does not change. */
  loseNode: (podName: string) => void;
  /** Until `resume`, no pod changes its status. */
  pause: () => Promise<void>;
  resume: () => void;
  /** Looks at the pods after a few milliseconds, instead of at the end of the interval. */
  wake: () => void;
  close: () => Promise<void>;
};

/** How long it takes to notice a change. */
const delayMs = 3;

/**
 * `stuck` runs and never becomes ready or ends. `creating` waits for a volume. `working` is at work: an init container that
 * has not ended.
 */
const badFates = ['missing', 'crash', 'stuck', 'creating', 'working'] as const;
type Fate = 'good' | (typeof badFates)[number];

const tagOf = (image: string) => /:([^:/@]+)(?:@.*)?$/.exec(image)?.[1] ?? '';

/** Works on the fake API server, and on a real one. It polls the pods unless it is woken. */
export function startKubelet(request: Request, namespace: string, intervalMs = 20): Kubelet {
  const healed: string[] = [];
  const crashes: Crash[] = [];
  const lost = new Set<string>();
  let isClosed = false;
  let isPaused = false;
  let updated: Promise<void> = Promise.resolve();
  let endPause: () => void = () => undefined;
  let isWoken = false;

  function fateOf(image: string): Fate {
    const tag = tagOf(image);
    if (healed.some((part) => tag.includes(part))) return 'good';
    return badFates.find((fate) => tag.includes(fate)) ?? 'good';
  }

  async function updateStatuses(): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const { items } = (await request('GET', path)) as { items: Pod[] };
    for (const pod of items) {
      if (['Succeeded', 'Failed'].includes(pod.status.phase) || lost.has(pod.metadata.name)) continue;
      const status = runsToEnd(pod)
        ? endingStatusFor(pod, fateOf)
        : withCrashes(statusFor(pod, fateOf), crashes);
      if (isReported(pod, status)) continue;
      await request('PATCH', `${path}/${pod.metadata.name}/status`, { status }).catch(() => undefined);
    }
  }

  async function poll(): Promise<void> {
    while (!isClosed) {
      // The server may be down, and pods may be deleted after they were listed.
      isWoken = false;
      if (!isPaused) updated = updateStatuses().catch(() => undefined);
      await updated;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, isWoken ? delayMs : intervalMs);
        endPause = () => {
          clearTimeout(timer);
          setTimeout(resolve, delayMs);
        };
      });
    }
  }
  const ended = poll();

  function wake(): void {
    if (!isWoken) endPause();
    isWoken = true;
  }

  return {
    wake,
    heal: (tagPart) => {
      healed.push(tagPart);
      wake();
    },
    crash: (tagPart, { at = Date.now(), isDown = false } = {}) => {
      crashes.push({ tagPart, at, isDown });
      wake();
    },
    loseNode: (podName) => void lost.add(podName),
    async pause() {
      isPaused = true;
      await updated;
    },
    resume: () => {
      isPaused = false;
      wake();
    },
    async close() {
      isClosed = true;
      wake();
      await ended;
    },
  };
}

type Crash = { readonly tagPart: string; readonly at: number; readonly isDown: boolean };

function withCrashes(status: Pod['status'], crashes: readonly Crash[]): Pod['status'] {
  let isAnyDown = false;
  const withCrash = (container: ContainerStatus) => {
    const own = crashes.filter(({ tagPart }) => tagOf(container.image).includes(tagPart));
    const last = own.at(-1);
    if (!last || !container.ready) return container;
    isAnyDown ||= last.isDown;
    const terminated = { exitCode: 1, reason: 'Error', finishedAt: seconds(last.at) };
    const waiting = { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' };
    const crashed = { ...container, restartCount: own.length, lastState: { terminated } };
    return last.isDown ? { ...crashed, ready: false, state: { waiting } } : crashed;
  };
  const containerStatuses = status.containerStatuses?.map(withCrash);
  // Of init containers only sidecars are running.
  const initContainerStatuses = status.initContainerStatuses?.map((one) =>
    one.state.running ? withCrash(one) : one,
  );
  const conditions = status.conditions?.map((condition) =>
    isAnyDown && condition.type.endsWith('Ready') ? { ...condition, status: 'False' } : condition,
  );
  return {
    ...status,
    ...(conditions && { conditions }),
    ...(containerStatuses && { containerStatuses }),
    ...(initContainerStatuses && { initContainerStatuses }),
  };
}

function statusFor(pod: Pod, fateOf: (image: string) => Fate): Pod['status'] {
  const { containers, initContainers = [] } = pod.spec;
  const isInitializing = initContainers.some((one) => !isSidecar(one) && fateOf(one.image) !== 'good');
  const isPending =
    isInitializing || containers.some(({ image }) => ['missing', 'creating'].includes(fateOf(image)));
  const isGood = !isInitializing && containers.every(({ image }) => fateOf(image) === 'good');
  const before = new Map(
    [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])].map((status) => [
      status.name,
      status,
    ]),
  );
  const statusOf = (container: Container) =>
    containerStatus(container, fateOf(container.image), isInitializing, before.get(container.name));
  const initStatusOf = (container: Container) => {
    const fate = fateOf(container.image);
    return fate === 'good' && !isSidecar(container)
      ? completedStatus(container)
      : containerStatus(container, fate, false, before.get(container.name));
  };
  const condition = (type: string, is: boolean, since = pod.status.conditions) => ({
    type,
    status: is ? 'True' : 'False',
    lastTransitionTime:
      since?.find((one) => one.type === type && one.status === (is ? 'True' : 'False'))?.lastTransitionTime ??
      seconds(),
  });
  return {
    phase: isPending ? 'Pending' : 'Running',
    conditions: [
      condition('Initialized', !isInitializing),
      condition('Ready', isGood),
      condition('ContainersReady', isGood),
      condition('PodScheduled', true),
    ],
    containerStatuses: containers.map(statusOf),
    ...(initContainers.length === 0 ? {} : { initContainerStatuses: initContainers.map(initStatusOf) }),
  };
}

const isSidecar = ({ restartPolicy }: Container) => restartPolicy === 'Always';

/** Whether it is the pod of a Job. */
function runsToEnd({ spec: { restartPolicy } }: Pod): boolean {
  return restartPolicy === 'Never' || restartPolicy === 'OnFailure';
}

/**
 * A good image ends without an error, a bad one with one. The termination message is the arguments, one on each
 * line.
 */
function endingStatusFor(pod: Pod, fateOf: (image: string) => Fate): Pod['status'] {
  const { containers, initContainers = [] } = pod.spec;
  const fates = containers.map(({ image }) => fateOf(image));
  const isWaiting = initContainers.some((one) => !isSidecar(one) && fateOf(one.image) !== 'good');
  const hasNotEnded = fates.some((fate) => fate !== 'good' && fate !== 'crash');
  if (isWaiting || hasNotEnded) return statusFor(pod, fateOf);
  const hasFailed = fates.includes('crash');
  const containerStatuses = containers.map((container) => {
    const isBad = fateOf(container.image) === 'crash';
    const message = container.args?.join('\n');
    const terminated = {
      ...completedStatus(container).state.terminated,
      reason: isBad ? 'Error' : 'Completed',
      exitCode: isBad ? 1 : 0,
      ...(message === undefined ? {} : { message }),
    };
    return { ...completedStatus(container), ready: false, state: { terminated } };
  });
  return { phase: hasFailed ? 'Failed' : 'Succeeded', containerStatuses };
}

type KubeletContainerStatus = ContainerStatus & { imageID: string; started: boolean };

function containerStatus(
  { name, image }: Container,
  fate: Fate,
  isWaiting: boolean,
  before: ContainerStatus | undefined,
): KubeletContainerStatus {
  const base = { name, image, imageID: '', ready: false, started: false, restartCount: 0 };
  const wait = (reason: string, message: string) => ({ ...base, state: { waiting: { reason, message } } });
  if (fate === 'missing') {
    const hasTried = before?.state.waiting?.reason.includes('ImagePull') === true && before.image === image;
    return hasTried
      ? wait('ImagePullBackOff', `Back-off pulling image "${image}"`)
      : wait('ErrImagePull', `failed to pull image "${image}": not found`);
  }
  if (isWaiting) return wait('PodInitializing', '');
  if (fate === 'creating') return wait('ContainerCreating', '');
  if (fate === 'crash') {
    return {
      ...wait('CrashLoopBackOff', `back-off 10s restarting failed container=${name}`),
      restartCount: 1,
    };
  }
  const startedAt = before?.state.running?.startedAt ?? seconds();
  const isReady = fate === 'good';
  return {
    ...base,
    imageID: `fake://${image}`,
    ready: isReady,
    started: true,
    state: { running: { startedAt } },
  };
}

const completedStatus = ({ name, image }: Container): KubeletContainerStatus => ({
  name,
  image,
  imageID: `fake://${image}`,
  ready: true,
  started: false,
  restartCount: 0,
  state: { terminated: { reason: 'Completed', exitCode: 0 } },
});

/** Whether the pod has this status already. */
function isReported({ status: present }: Pod, next: Pod['status']): boolean {
  const summaryOf = ({
    phase,
    conditions,
    containerStatuses = [],
    initContainerStatuses = [],
  }: Pod['status']) => {
    const states = [...containerStatuses, ...initContainerStatuses].map(
      ({ image, ready, restartCount, state }) =>
        `${image} ${ready} ${restartCount} ${state.waiting?.reason ?? Object.keys(state).join()}`,
    );
    const statuses = next.conditions?.map(
      ({ type }) => conditions?.find((one) => one.type === type)?.status ?? 'unknown',
    );
    return [phase, ...(statuses ?? []), ...states].join('; ');
  };
  return summaryOf(present) === summaryOf(next);
}
