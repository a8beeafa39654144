// A wait that someone outside asked for. It is bounded where it is parsed, so that no code behind that has to.

/** Milliseconds, more than none and at most a day. */
export type Delay = number & { readonly isBounded: true };

const longestMs = 86_400_000;

/** The wait, or a day where it is longer; undefined where there is nothing to wait for. */
export function toDelay(ms: number): Delay | undefined {
  return ms > 0 ? (Math.min(longestMs, Math.ceil(ms)) as Delay) : undefined;
}
