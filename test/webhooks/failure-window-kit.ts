// What the tests of the deactivation rule share.

export const dayMs = 86_400_000;
/** A moment of real size, so that nothing depends on small numbers. */
export const firstFailure = 1_767_225_600_000;
