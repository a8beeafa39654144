// What a stored time says after the database's clock was set back: one that lies too far ahead was written before that, and its age is
// unknown. A minute ahead is not too far: a statement may read the clock before another one that commits first, and then sees its time.

/** True of a time in the future, which was written before the clock was set back. */
export const isAhead = (time: string) => `${time} > now() + interval '1 minute'`;

/** True until this time has come, which was written as now and `ms` milliseconds. */
export const isBefore = (until: string, ms: number | string) =>
  `(${until} > now() AND NOT ${isAhead(`${until} - ${ms} * interval '1 millisecond'`)})`;

/**
 * The longest lease or claim: the limit of LEASE and that minute. An expiry further ahead counts as expired, or the lane would be blocked
 * until the clock has caught up.
 */
export const longestLease = `interval '11 minutes'`;
