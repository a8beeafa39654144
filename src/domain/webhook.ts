// Webhooks: what a message says about an event, what an endpoint's answer means, when a failed delivery is tried again, and what the status
// says of an endpoint. Pure: signing and sending are in src/webhooks.

import { formatAgo, formatCount, formatSpan } from './format.ts';
import { type BackoffRange, backoff, type Delay } from './trouble.ts';

export const eventTypes = [
  'application.received',
  'application.changed',
  'application.ready',
  'application.missing',
  'application.erased',
] as const;
export type EventType = (typeof eventTypes)[number];

/** What a message holds beside ids, type and state: the application's row of the anonymous or of the personal view. */
export type Detail = 'anonymous' | 'personal';

/** An event with its application as it is at the moment of reading, not as it was at the event. */
export interface WebhookEvent {
  readonly eventId: bigint;
  readonly advertiserId: bigint;
  readonly applicationId: bigint;
  readonly type: EventType;
  readonly at: Date;
  /** Null where the application is unknown. */
  readonly state: 'stored' | 'ready' | 'missing' | 'erased' | null;
  /** When it was read, by the database: the time of the message. A receiver refuses one that is minutes off. */
  readonly readAt: Date;
  /** Its row as JSON text. Null without a `Detail`, and for an erased application. */
  readonly application: string | null;
}

/** One request to an endpoint, before it is signed. */
export interface WebhookMessage {
  /** The same for every attempt, so that a receiver can tell a repetition. */
  readonly id: string;
  readonly body: string;
  readonly at: Date;
}

/**
 * The message of an event. Ids are written as JSON integers of any length, as `to_jsonb` of the row writes them. The message id holds the
 * event's time, because a restored database uses numbers of events again.
 */
export function toMessage(event: WebhookEvent, withApplication: boolean): WebhookMessage {
  const { eventId, advertiserId, applicationId, type, at, state, application, readAt } = event;
  const ids = `"event_id":${eventId},"advertiser_id":${advertiserId},"application_id":${applicationId}`;
  const row = withApplication ? `,"application":${application}` : '';
  const data = `{${ids},"state":${JSON.stringify(state)}${row}}`;
  return {
    id: `evt_${advertiserId}_${eventId}_${at.getTime().toString(36)}`,
    body: `{"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(at)},"data":${data}}`,
    at: readAt,
  };
}

export function toPing(webhook: string, at: Date): WebhookMessage {
  return {
    id: `ping_${at.getTime().toString(36)}`,
    body: JSON.stringify({ type: 'intake.ping', timestamp: at, data: { webhook } }),
    at,
  };
}

export type Answer =
  | { readonly status: number; readonly retryAfterMs?: Delay | undefined }
  | { readonly status: null; readonly reason: string };

/** Failures are retried for this long, as long as the schedule that Standard Webhooks recommends. Then the endpoint counts as halted. */
export const retryForMs = 75 * 3_600_000;

/** An endpoint that is back waits at most an hour: everything behind the failed event waits with it. */
const whileFailing: BackoffRange = { minMs: 1_000, baseMs: 5_000, maxMs: 3_600_000 };
const whileHalted: BackoffRange = { minMs: 3 * 3_600_000, baseMs: 6 * 3_600_000, maxMs: 6 * 3_600_000 };

/** Earlier attempts at the same event that it did not take, and for how long it has failed. */
export interface Failing {
  readonly failures: number;
  readonly forMs: number;
}

export function toPauseMs({ failures, forMs }: Failing, random: number): number {
  return backoff(failures + 1, forMs < retryForMs ? whileFailing : whileHalted, random);
}

export type DeliveryFailure = NonNullable<ReturnType<typeof findFailure>>;

/** The failure that an answer means; null where the message was delivered. `isGone`: only a person continues. */
export function findFailure(answer: Answer, failing: Failing, random: number) {
  if (isDelivered(answer)) return null;
  const demandedMs = answer.status === null ? 0 : (answer.retryAfterMs ?? 0);
  // An endpoint can make the pause longer, not shorter: one that asks for a second for ever would be sent a message a second.
  const waitMs = Math.max(demandedMs, toPauseMs(failing, random));
  return { reason: describeAnswer(answer), waitMs, isGone: answer.status === 410 };
}

export const isDelivered = ({ status }: Answer): boolean => status !== null && status >= 200 && status < 300;

/** The answer in words for the status and the log. Nothing that the endpoint wrote is part of it. */
export function describeAnswer(answer: Answer): string {
  if (answer.status === null) return answer.reason;
  if (answer.status >= 300 && answer.status < 400) return `it answered ${answer.status}; redirects are not followed`;
  return `it answered ${answer.status}`;
}

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
  readonly behindSince: Date | null;
  /** Attempts in a row at the next event that it did not take, with the one under way. */
  readonly failures: number;
  readonly failingSince: Date | null;
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

export function toWebhookLagMs({ behindSince }: WebhookStatus, now: Date): number {
  return behindSince === null ? 0 : Math.max(0, now.getTime() - behindSince.getTime());
}

/** An endpoint in words, in the columns of `intake webhook list` and of the status page. */
export function toWebhookWords(one: WebhookStatus, now: Date) {
  const { name, advertiser, behind, lastAnswer, answeredAt, nextAt, stop } = one;
  return {
    ...{ name, advertiser, state: toWebhookState(one, now), position: String(one.position ?? '') },
    'events waiting': formatCount(behind),
    behind: behind === 0 ? '' : formatSpan(toWebhookLagMs(one, now)),
    'last answer': answeredAt === null ? 'none yet' : `${lastAnswer}, ${formatAgo(answeredAt, now)}`,
    'next try': stop === null ? (nextAt?.toISOString() ?? '') : '',
  };
}

/** An endpoint that takes nothing for this long is a problem, whether it fails or is merely too slow. */
const lateMs = 3_600_000;

/** Events after a position are counted up to here, so that a status costs the same however many wait. */
export const mostCounted = 10_000;

/** The problem of an endpoint; none while it keeps up. It is urgent where only a person, or the endpoint's recovery, continues. */
export function toWebhookProblems(one: WebhookStatus, now: Date) {
  const { advertiser, name, stop, failingSince, lastAnswer, behind } = one;
  const [state, lagMs] = [toWebhookState(one, now), toWebhookLagMs(one, now)];
  const problem = (is: string, command: string, urgent: boolean) => [
    { advertiser, what: `Webhook ${name} is ${is}`, command, urgent },
  ];
  const pending = `${formatCount(behind, 'event waits', 'events wait')}${behind >= mostCounted ? ' or more' : ''}`;
  const retry = `intake retry --webhook ${name}`;
  if (stop === 'gone') return problem(`disabled: it answered 410 (gone); ${pending}.`, retry, true);
  if (stop === 'lost') {
    const why = 'it was away for so long that events were deleted before it took them (thirty days)';
    return problem(`disabled: ${why}. Its receiver must read all applications anew.`, retry, true);
  }
  if (state === 'halted') {
    const since = formatSpan(now.getTime() - (failingSince?.getTime() ?? 0));
    return problem(`halted, it has failed for ${since}: ${lastAnswer}; ${pending}.`, retry, true);
  }
  if (lagMs < lateMs) return [];
  const why = state === 'failing' ? `: ${lastAnswer}` : '';
  return problem(`${formatSpan(lagMs)} behind${why}; ${pending}.`, `intake webhook test ${name}`, false);
}
