// Looks up the images that workloads will get in their registries, before an upgrade changes anything.
import { createLimiter } from '../../../lib/async.ts';
import { groupBy } from '../../../lib/collections.ts';
import { type Problem, maxProblems, problemsOf } from '../../../lib/errors.ts';
import { formatList } from '../../../lib/format.ts';
import type { Resolve } from '../../../lib/guarded-connector.ts';
import type { Runtime } from '../../../lib/runtime.ts';
import { truncate } from '../../../lib/text.ts';
import type { Findings, Workload } from '../workloads.ts';
import { parseRegistryReference } from './image.ts';
import { RegistryClient } from './registry-client.ts';
import { type Lookup, type RegistryAuth, lookUpImage, readRegistryAuth } from './registry.ts';

type ImageCheckerOptions = {
  readonly runtime: Pick<Runtime, 'sleep'>;
  /** `required` turns what could not be found out into problems. */
  readonly mode: 'auto' | 'required';
  readonly insecureHosts: ReadonlySet<string>;
  readonly authFile: string | undefined;
  readonly userAgent: string;
  readonly resolve?: Resolve;
};

const checkTimeoutMs = 60_000;
const parallelLookups = 8;
const maxMessage = 2000;

const late: Lookup = {
  state: 'unknown',
  cause: `The lookups took longer than ${checkTimeoutMs / 1000} seconds.`,
  isTransient: true,
};

type CheckedImage = {
  readonly image: string;
  readonly outcome: Lookup | { readonly state: 'no-registry' | 'invalid' };
};

type Session = {
  readonly client: RegistryClient;
  readonly auth: RegistryAuth;
  readonly stopping: AbortSignal;
};

export class ImageChecker {
  readonly #options: ImageCheckerOptions;
  /** One for the process: several requests may check images at the same time. */
  readonly #limit = createLimiter(parallelLookups);

  constructor(options: ImageCheckerOptions) {
    this.#options = options;
  }

  async check(workloads: readonly Workload[]): Promise<Findings> {
    const users = findUsers(workloads);
    const images = [...users.keys()];
    if (images.length === 0) return { problems: [], notices: [] };
    // The file is read each time, because the credentials in it may expire and be replaced.
    const file = await readRegistryAuth(this.#options.authFile);
    const fileProblems = 'problems' in file ? file.problems : [];
    const checked = await this.#lookUpAll(images, 'auth' in file ? file.auth : new Map());
    const transient = formatUnknown(checked, true);
    const lasting = [...fileProblems, ...formatUnknown(checked, false)];
    const isRequired = this.#options.mode === 'required';
    return {
      problems: [
        ...imageProblems(formatWrong(checked, users)),
        ...(isRequired ? imageProblems(lasting) : []),
        ...(isRequired ? imageProblems(transient).map((one) => ({ ...one, isTransient: true })) : []),
      ],
      notices: [
        ...(isRequired ? [] : [...lasting, ...transient].map(cut)),
        ...formatWithoutRegistry(checked),
      ],
    };
  }

  async #lookUpAll(images: readonly string[], auth: RegistryAuth): Promise<CheckedImage[]> {
    const over = new AbortController();
    const finished = new AbortController();
    const client = new RegistryClient(this.#options);
    const session = { client, auth, stopping: over.signal };
    const timeout = this.#options.runtime.sleep(checkTimeoutMs, finished.signal).then(() => {
      over.abort();
      return late;
    });
    timeout.catch(() => undefined);
    try {
      return await Promise.all(
        images.map(async (image) => ({ image, outcome: await this.#lookUpInTime(image, session, timeout) })),
      );
    } finally {
      finished.abort();
    }
  }

  async #lookUpInTime(
    image: string,
    { client, auth, stopping }: Session,
    timeout: Promise<Lookup>,
  ): Promise<CheckedImage['outcome']> {
    const reference = parseRegistryReference(image);
    if (typeof reference === 'string') return { state: reference };
    const options = { client, credentials: auth.get(reference.host), stopping };
    const lookUp = async () => (stopping.aborted ? late : lookUpImage(reference, options));
    return Promise.race([this.#limit(lookUp), timeout]);
  }
}

/** The containers that get each image. */
function findUsers(workloads: readonly Workload[]): Map<string, Set<string>> {
  const users = new Map<string, Set<string>>();
  for (const { name, parts } of workloads) {
    for (const { container, image } of parts)
      users.set(image, (users.get(image) ?? new Set()).add(`${container} of ${name}`));
  }
  return users;
}

function formatWrong(
  checked: readonly CheckedImage[],
  users: ReadonlyMap<string, ReadonlySet<string>>,
): string[] {
  return checked.flatMap(({ image, outcome }) => {
    const problem = problemOf(image, outcome);
    const containers = [...(users.get(image) ?? [])];
    const noun = containers.length === 1 ? 'container' : 'containers';
    return problem === undefined ? [] : [`${image} (${noun} ${formatList(containers)}) ${problem}`];
  });
}

function problemOf(image: string, outcome: CheckedImage['outcome']): string | undefined {
  const [host = ''] = image.split('/', 1);
  if (outcome.state === 'invalid') return 'is not a valid reference of an image.';
  return outcome.state === 'missing' ? `does not exist: ${host} answers 404.` : undefined;
}

/** One sentence for each cause, because an unavailable registry often has most of the images. */
function formatUnknown(checked: readonly CheckedImage[], isTransient: boolean): string[] {
  const unknown = checked.flatMap(({ image, outcome }) =>
    outcome.state === 'unknown' && outcome.isTransient === isTransient
      ? [{ image, cause: outcome.cause }]
      : [],
  );
  return [...groupBy(unknown, ({ cause }) => cause)].map(
    ([cause, images]) => `${cause} Not checked: ${formatList(images.map(({ image }) => image))}.`,
  );
}

function formatWithoutRegistry(checked: readonly CheckedImage[]): string[] {
  const images = checked.filter(({ outcome }) => outcome.state === 'no-registry').map(({ image }) => image);
  return images.length > 0
    ? [cut(`Images without a registry host are not checked: ${formatList(images)}.`)]
    : [];
}

function imageProblems(messages: readonly string[]): Problem[] {
  return problemsOf('images', messages.slice(0, maxProblems).map(cut));
}

function cut(message: string): string {
  return truncate(message, maxMessage);
}
