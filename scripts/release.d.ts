export type ReleaseState = {
  readonly version: string;
  /** The versions that other files name, by the names of the files. */
  readonly versions: Readonly<Record<string, string | undefined>>;
  readonly changelog: string;
  /** What `git status --porcelain` prints. */
  readonly changes: string;
  readonly tags: readonly string[];
};

/** What prevents the release. */
export function findProblems(state: ReleaseState): string[];

/** The text of the annotated tag: the entry of the changelog, and the checksums of the files. */
export function writeTagText(
  state: Pick<ReleaseState, 'version' | 'changelog'>,
  files: Readonly<Record<string, Uint8Array>>,
): string;
