// What is known about an endpoint of webhooks, and the problems that follow from it.
import { formatCount, formatSpan } from '../format.ts';
import { retryForMs } from '../webhook.ts';

export interface WebhookStatus {
  readonly advertiser: string;
  readonly name: string;
  /**
   * The last event that the endpoint took or passed: of another type, or too old when it was new. 0 if there is none, null before a worker
   * knows the endpoint.
   */
  readonly position: bigint | null;
  /** Events after the position, counted up to 10,000. */
  readonly behind: number;
  /** When the first of them happened; null when there is none. */
  readonly behindSince: Date | null;
  /** Attempts in a row at the next event that it did not take, with the one under way. */
  readonly failures: number;
  readonly failingSince: Date | null;
  /** When the next event is tried again; null when nothing failed. */
  readonly nextAt: Date | null;
  /** `gone`: it answered 410. `lost`: events that it never took were deleted after thirty days. Only a person continues. */
  readonly stop: 'gone' | 'lost' | null;
  /** What it answered last, in words, and when. */
  readonly lastAnswer: string | null;
  readonly answeredAt: Date | null;
}

export type WebhookState = 'new' | 'up to date' | 'delivering' | 'failing' | 'halted' | 'disabled';

export function toWebhookState(one: WebhookStatus, now: Date): WebhookState {
  if (one.position === null) return 'new';
  if (one.stop !== null) return 'disabled';
  if (one.failingSince === null) return one.behind === 0 ? 'up to date' : 'delivering';
  return now.getTime() - one.failingSince.getTime() < retryForMs ? 'failing' : 'halted';
}

/** How long the first event after the position has waited. */
export function toWebhookLagMs({ behindSince }: WebhookStatus, now: Date): number {
  return behindSince === null ? 0 : Math.max(0, now.getTime() - behindSince.getTime());
}

/** An endpoint that takes nothing for this long is a problem, whether it fails or is merely too slow. */
const lateMs = 3_600_000;

/** The problem of an endpoint; none while it keeps up. It is urgent where only a person, or the endpoint's recovery, continues. */
export function toWebhookProblems(one: WebhookStatus, now: Date) {
  const { advertiser, name, stop, lastAnswer, behind } = one;
  const problem = (what: string, command: string, urgent: boolean) => [{ advertiser, what, command, urgent }];
  const pending = `${formatCount(behind, 'event waits', 'events wait')}${behind >= mostCounted ? ' or more' : ''}`;
  const retry = `intake retry --webhook ${name}`;
  if (stop === 'gone') {
    return problem(`Webhook ${name} is disabled: it answered 410 (gone); ${pending}.`, retry, true);
  }
  if (stop === 'lost') {
    const why = 'it was away for so long that events were deleted before it took them (thirty days)';
    return problem(`Webhook ${name} is disabled: ${why}. Its receiver must read all applications anew.`, retry, true);
  }
  const state = toWebhookState(one, now);
  if (state === 'halted') {
    const since = formatSpan(now.getTime() - (one.failingSince?.getTime() ?? 0));
    return problem(`Webhook ${name} is halted, it has failed for ${since}: ${lastAnswer}; ${pending}.`, retry, true);
  }
  const lagMs = toWebhookLagMs(one, now);
  if (lagMs < lateMs) return [];
  const why = state === 'failing' ? `: ${lastAnswer}` : '';
  return problem(
    `Webhook ${name} is ${formatSpan(lagMs)} behind${why}; ${pending}.`,
    `intake webhook test ${name}`,
    false,
  );
}

/** Events after a position are counted up to here, so that a status costs the same however many wait. */
export const mostCounted = 10_000;
