// Times for the tests of the deactivation rule.

export const dayMs = 86_400_000;
/** A realistic time: 2026-01-01. */
export const firstFailure = 1_767_225_600_000;
