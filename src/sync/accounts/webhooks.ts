// Delivers an advertiser's events to one endpoint: in order, one after the other, each at least once. The first failure stops it there, and
// the events behind wait. A worker that dies between an answer and its record repeats at most two events.
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import {
  type Answer,
  type DeliveryFailure,
  type Detail,
  describeAnswer,
  type EventType,
  findFailure,
  toMessage,
  type WebhookMessage,
} from '../../domain/webhook.ts';
import type { WebhookKey, WebhookName, WebhookPlace } from '../../store/accounts/webhooks.ts';
import type { Store } from '../../store/store.ts';
import { type HeldLane, type LaneRequest, tryHoldLane } from './held-lane.ts';

/** A configured endpoint, and the client that signs and sends. */
export interface Webhook extends WebhookName {
  /** Null: every type. */
  readonly types: readonly EventType[] | null;
  readonly detail: Detail | null;
  readonly send: (message: WebhookMessage) => Promise<Answer>;
}

export interface DeliverDeps {
  readonly store: Pick<Store, 'leases' | 'webhooks'>;
  readonly onStep?: (() => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export type DeliverRequest = Pick<LaneRequest, 'owner' | 'leaseMs' | 'signal'> & { readonly advertiserId: bigint };

export interface DeliverySummary {
  readonly delivered: number;
  /** Why it stopped before the newest event; null if it did not. */
  readonly failure: (DeliveryFailure & { readonly eventId: bigint; readonly attempt: number }) | null;
}

const batchSize = 100;
/** A message says how its application is now. What was read longer ago is read again, so that an erasure is not overtaken. */
const freshMs = 1_000;

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
  const key: WebhookKey = { advertiserId, name: webhook.name };
  const held = { lease: { ...lane.lease, leaseMs: request.leaseMs }, signal: lane.signal };
  let delivered = 0;
  while (!lane.signal.aborted) {
    const place = await webhooks.loadPlace(key);
    if (!place.isDue) break;
    const batch = await sendBatch(deps, webhook, key, held, place);
    delivered += batch.delivered;
    if (batch.failure !== null) return { delivered, failure: batch.failure };
    if (batch.isEmpty) break;
  }
  return { delivered, failure: null };
}

type Held = Pick<HeldLane, 'signal'> & { readonly lease: Parameters<Store['webhooks']['record']>[0] };
type Batch = DeliverySummary & { readonly isEmpty: boolean };

/** Sends the next events. When it returns, the position is written. */
async function sendBatch(
  { store: { webhooks }, onStep, crashPoint }: DeliverDeps,
  webhook: Webhook,
  key: WebhookKey,
  { lease, signal }: Held,
  place: WebhookPlace,
): Promise<Batch> {
  const { advertiserId } = key;
  const { detail, types } = webhook;
  const events = await webhooks.loadEvents({ advertiserId, after: place.position, limit: batchSize, detail });
  const staleAt = performance.now() + freshMs;
  let { position } = place;
  let answer: string | null = null;
  let delivered = 0;
  let earlier = { failures: place.failures, forMs: place.failingForMs };
  let recorded = position;
  /** The position is written while the next message is under way, and never more than one message behind. */
  let written = Promise.resolve();
  // A write that comes after the lease was released would take the lease again, and keep the endpoint from other workers.
  await using pending = new AsyncDisposableStack();
  pending.defer(() => written.catch(() => {}));
  const record = () => {
    recorded = position;
    written = webhooks.record(lease, key, { position, answer, failure: null });
    // The next `await` throws it.
    written.catch(() => {});
  };
  for (const event of events) {
    if (signal.aborted || (delivered > 0 && performance.now() > staleAt)) break;
    if (types === null || types.includes(event.type)) {
      const answered = await webhook.send(toMessage(event, detail !== null));
      crashPoint?.('webhookAnswered');
      await written;
      answer = describeAnswer(answered);
      const failure = findFailure(answered, earlier, Math.random());
      if (failure !== null) {
        const { waitMs, isGone } = failure;
        await webhooks.record(lease, key, { position, answer, failure: { waitMs, stop: isGone ? 'gone' : null } });
        const attempt = earlier.failures + 1;
        return { delivered, isEmpty: false, failure: { ...failure, eventId: event.eventId, attempt } };
      }
      earlier = { failures: 0, forMs: 0 };
      delivered++;
      position = event.eventId;
      record();
    }
    // One of another type is passed, and written with the next one that is sent, or at the end.
    position = event.eventId;
    onStep?.();
  }
  await written;
  if (position > recorded) record();
  await written;
  return { delivered, isEmpty: events.length === 0, failure: null };
}
