// Delivers an advertiser's events to one endpoint: in order, one after the other, each at least once. The first failure stops it there, and
// the events behind wait. A worker that dies between an answer and its record repeats at most two events, and leaves an attempt behind that
// counts as failed.
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import {
  type Answer,
  type DeliveryFailure,
  type Detail,
  describeAnswer,
  type EventType,
  findFailure,
  toMessage,
  toPauseMs,
  type WebhookEvent,
  type WebhookMessage,
} from '../../domain/webhook.ts';
import type { DeliveryRecord, WebhookName, WebhookPlace } from '../../store/accounts/webhooks.ts';
import type { Store } from '../../store/store.ts';
import { type LaneRequest, tryHoldLane } from './held-lane.ts';

/** A configured endpoint, and the client that signs and sends. */
export interface Webhook extends WebhookName {
  /** Null: every type. */
  readonly types: readonly EventType[] | null;
  readonly detail: Detail | null;
  readonly send: (message: WebhookMessage) => Promise<Answer>;
}

export interface DeliverDeps {
  readonly store: Pick<Store, 'leases' | 'webhooks'>;
  /** Called for each event, also for one that is passed because of its type. */
  readonly onEvent?: ((isTaken: boolean) => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export type DeliverRequest = Pick<LaneRequest, 'owner' | 'leaseMs' | 'signal'> & { readonly advertiserId: bigint };

export interface DeliverySummary {
  readonly delivered: number;
  /** Why it stopped before the newest event; null if it did not. */
  readonly failure: (DeliveryFailure & { readonly eventId: bigint; readonly attempt: number }) | null;
}

/** A message says how its application is now. What was read longer ago is read again, so that an erasure is not overtaken. */
const freshMs = 1_000;
/** Events that are read at once: at first, and at most. In between, twice as many as could be sent while they were fresh. */
const firstRead = 10;
const mostRead = 100;

/** Delivers until the endpoint has every event, fails, or is stopped. Null when another process delivers to it. */
export async function deliver(
  deps: DeliverDeps,
  webhook: Webhook,
  { advertiserId, ...request }: DeliverRequest,
): Promise<DeliverySummary | null> {
  const { webhooks } = deps.store;
  // The spaces keep it apart from the names of advertisers, which have none.
  const name = `webhook ${webhook.account} ${webhook.name}`;
  await using lane = await tryHoldLane(deps.store, { ...request, name, lane: 'live' });
  if (lane === null) return null;
  const key = { advertiserId, name: webhook.name };
  const lease = { ...lane.lease, leaseMs: request.leaseMs };
  const record = (what: DeliveryRecord) => webhooks.record(lease, key, what);
  const delivery = { ...deps, ...webhook, record, signal: lane.signal };
  let delivered = 0;
  let limit = firstRead;
  while (!lane.signal.aborted) {
    const place = await webhooks.loadPlace(key);
    if (!place.isDue) break;
    const events = await webhooks.loadEvents({ advertiserId, after: place.position, limit, detail: webhook.detail });
    const batch = await sendEvents(delivery, place, events);
    delivered += batch.delivered;
    if (batch.failure !== null) return { delivered, failure: batch.failure };
    if (batch.done === 0) break;
    limit = Math.min(mostRead, 2 * batch.done);
  }
  return { delivered, failure: null };
}

interface Delivery extends Webhook, Pick<DeliverDeps, 'onEvent' | 'crashPoint'> {
  readonly record: (what: DeliveryRecord) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Sends events as long as they are fresh. When it returns, the position is written. `done` counts those that were sent or passed. */
async function sendEvents(
  { types, detail, send, record, signal, onEvent, crashPoint }: Delivery,
  place: WebhookPlace,
  events: readonly WebhookEvent[],
): Promise<DeliverySummary & { readonly done: number }> {
  const staleAt = performance.now() + freshMs;
  let { position } = place;
  let answer: string | null = null;
  let delivered = 0;
  let done = 0;
  let recorded = position;
  let earlier = { failures: place.failures, forMs: place.failingForMs };
  /** The position is written while the next message is under way, and never more than one message behind. */
  let written = Promise.resolve();
  // A write that comes after the lease was released would take the lease again, and keep the endpoint from other workers.
  await using pending = new AsyncDisposableStack();
  pending.defer(() => written.catch(() => {}));
  for (const event of events) {
    if (signal.aborted || (delivered > 0 && performance.now() > staleAt)) break;
    const isWanted = types === null || types.includes(event.type);
    if (isWanted) {
      const failures = earlier.failures + 1;
      if (delivered === 0) {
        // Counted before it is sent: an attempt whose end nobody records, because the worker died or lost its lease, is not repeated at once.
        const waitMs = toPauseMs(earlier, Math.random());
        await record({ position, answer: null, failure: { failures, waitMs, stop: null } });
      }
      const answered = await send(toMessage(event, detail !== null));
      crashPoint?.('webhookAnswered');
      await written;
      answer = describeAnswer(answered);
      const failure = findFailure(answered, earlier, Math.random());
      if (failure !== null) {
        const { waitMs, isGone } = failure;
        await record({ position, answer, failure: { failures, waitMs, stop: isGone ? 'gone' : null } });
        return { delivered, done, failure: { ...failure, eventId: event.eventId, attempt: failures } };
      }
      earlier = { failures: 0, forMs: 0 };
      delivered++;
      recorded = event.eventId;
      written = record({ position: recorded, answer, failure: null });
      // The next `await` throws it.
      written.catch(() => {});
    }
    // One of another type is passed, and written with the next one that is sent, or at the end.
    position = event.eventId;
    done++;
    onEvent?.(isWanted);
  }
  await written;
  if (position > recorded) await record({ position, answer, failure: null });
  return { delivered, done, failure: null };
}
