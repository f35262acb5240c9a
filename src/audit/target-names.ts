// The names of what the entries of the audit trail concern. The features know them.

export type TargetNames = {
  /** Undefined if the path has no name, or is that of something deleted. */
  nameOf: (target: string) => Promise<string | undefined>;
  /** The targets whose names contain the text, ignoring case. */
  find: (text: string) => readonly string[];
};
