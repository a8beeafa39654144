// Delivers an advertiser's events to one endpoint: in order, each at least once. The first failure stops it there. A worker that dies
// before it has recorded the answers of a batch repeats that batch, and leaves an attempt behind that counts as failed.
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import {
  type Answer,
  type DeliveryFailure,
  type Detail,
  describeAnswer,
  type EventType,
  type Failing,
  findFailure,
  toMessage,
  toPauseMs,
  type WebhookEvent,
  type WebhookMessage,
} from '../../domain/webhook.ts';
import type { DeliveryRecord, WebhookName, WebhookPlace } from '../../store/accounts/webhooks.ts';
import type { Store } from '../../store/store.ts';
import { type LaneHolder, tryHoldLane } from './held-lane.ts';

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

export interface DeliverySummary {
  readonly delivered: number;
  /** Why it stopped before the newest event; null if it did not. */
  readonly failure: (DeliveryFailure & { readonly eventId: bigint; readonly attempt: number }) | null;
}

/** A message says how its application is now. What was read longer ago is read again, so that an erasure is not overtaken. */
const freshMs = 1_000;
/** The first message waits for a record. One that took longer than this was read before the worker, or the database, stood still. */
const stillMs = 60_000;
const batchSize = 100;

/** Delivers until the endpoint has every event, fails, or is stopped. Null when another process delivers to it. */
export async function deliver(
  deps: DeliverDeps,
  webhook: Webhook,
  { advertiserId, ...request }: LaneHolder & { readonly advertiserId: bigint },
): Promise<DeliverySummary | null> {
  const { webhooks } = deps.store;
  // The spaces keep it apart from the names of advertisers, which have none.
  const name = `webhook ${webhook.account} ${webhook.name}`;
  await using lane = await tryHoldLane(deps.store, { ...request, name, lane: 'live' });
  if (lane === null) return null;
  const key = { advertiserId, name: webhook.name };
  const record = (what: DeliveryRecord) => webhooks.recordDelivery(lane.lease, key, what);
  const delivery = { ...deps, ...webhook, record, signal: lane.signal };
  let sum: DeliverySummary = { delivered: 0, failure: null };
  while (!lane.signal.aborted && sum.failure === null) {
    const place = await webhooks.loadWebhookPlace(key);
    if (!place.isDue) break;
    const events = await webhooks.loadWebhookEvents(advertiserId, place.position, batchSize, webhook.detail);
    if (events.length === 0) break;
    const { delivered, failure } = await sendEvents(delivery, place, events);
    sum = { delivered: sum.delivered + delivered, failure };
  }
  return sum;
}

const none: Failing = { failures: 0, forMs: 0 };

interface Delivery extends Webhook, Pick<DeliverDeps, 'onEvent' | 'crashPoint'> {
  readonly record: (what: DeliveryRecord) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Sends events while they are fresh. The position is written once for all of them: a commit takes longer than many answers. */
async function sendEvents(
  { types, detail, send, record, signal, onEvent, crashPoint }: Delivery,
  place: WebhookPlace,
  events: readonly WebhookEvent[],
): Promise<DeliverySummary> {
  const readAt = performance.now();
  let { position } = place;
  let answer: string | null = null;
  let delivered = 0;
  for (const event of events) {
    if (signal.aborted || (delivered > 0 && performance.now() > readAt + freshMs)) break;
    const isWanted = types === null || types.includes(event.type);
    if (isWanted) {
      const earlier = delivered === 0 ? place : none;
      const failures = earlier.failures + 1;
      if (delivered === 0) {
        // Counted before it is sent: an attempt whose end nobody records, because the worker died or lost its lease, is not repeated at once.
        const waitMs = toPauseMs(earlier, Math.random());
        await record({ position, answer: null, failure: { failures, waitMs, stop: null } });
        if (performance.now() > readAt + stillMs) return { delivered, failure: null };
      }
      const answered = await send(toMessage(event, detail !== null));
      crashPoint?.('webhookAnswered');
      answer = describeAnswer(answered);
      const failure = findFailure(answered, earlier, Math.random());
      if (failure !== null) {
        const { waitMs, isGone } = failure;
        await record({ position, answer, failure: { failures, waitMs, stop: isGone ? 'gone' : null } });
        return { delivered, failure: { ...failure, eventId: event.eventId, attempt: failures } };
      }
      delivered++;
    }
    // One of another type is passed.
    position = event.eventId;
    onEvent?.(isWanted);
  }
  if (position > place.position) await record({ position, answer, failure: null });
  return { delivered, failure: null };
}
