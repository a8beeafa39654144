// Starts a delivery for each endpoint that has events to take. Deliveries run side by side, so that a slow endpoint delays no other.
import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseLost } from '../../domain/trouble.ts';
import type { LaneHolder } from '../accounts/held-lane.ts';
import { type DeliverDeps, deliver, type Webhook } from '../accounts/webhooks.ts';
import { createTeller, type Reports, toErrorKind } from './pass.ts';

export interface WebhookLoopDeps extends Reports, Pick<DeliverDeps, 'store' | 'crashPoint'> {
  readonly webhooks: readonly Webhook[];
  /** Resolves when events were committed, or after the timeout. */
  readonly untilEvents: (timeoutMs: number, signal: AbortSignal) => Promise<void>;
  /** Called for each event that an endpoint took. */
  readonly onDelivered: () => void;
}

/** How often events are looked for if no notification arrives, and how long an endpoint rests that another process delivers to. */
const checkEveryMs = 2_000;
/** Between two looks, so that many small commits make few deliveries. */
const restMs = 50;

/** Runs until the signal aborts; resolves when every delivery has ended. */
export async function runWebhookLoop(deps: WebhookLoopDeps, request: LaneHolder): Promise<void> {
  const { store, log, webhooks } = deps;
  const { signal } = request;
  if (webhooks.length === 0) return;
  const running = new Map<string, Promise<void>>();
  let onEnd = () => {};
  const rest = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});

  async function run(webhook: Webhook, advertiserId: bigint): Promise<void> {
    const facts = { advertiser: webhook.account, webhook: webhook.name };
    const tell = createTeller(deps, 'webhooks');
    using heartbeat = deps.watchdog.begin({ task: 'webhooks', ...facts });
    try {
      const onEvent = (isTaken: boolean) => {
        heartbeat.move();
        if (isTaken) deps.onDelivered();
      };
      const summary = await deliver({ ...deps, onEvent }, webhook, { ...request, advertiserId });
      if (summary === null) return await heartbeat.whileWaiting(rest(checkEveryMs));
      const { delivered, failure } = summary;
      // An endpoint that fails has metrics of its own.
      tell('done');
      if (delivered > 0) log.debug({ ...facts, delivered }, 'webhook events delivered');
      if (failure === null) return;
      const { isGone, ...how } = failure;
      const message = isGone ? 'webhook disabled by its endpoint' : 'webhook delivery failed; trying again';
      log.warn({ ...facts, ...how, waitMs: Math.round(how.waitMs) }, message);
    } catch (error) {
      if (error instanceof LeaseLost) return log.warn(facts, 'lease lost');
      tell('failed', { kind: toErrorKind(error) });
      log.warn({ ...facts, err: error }, 'webhook delivery interrupted; trying again');
      await heartbeat.whileWaiting(rest(checkEveryMs));
    }
  }

  while (!signal.aborted) {
    // Listens before it looks, so that it misses nothing that is committed meanwhile.
    const ended = Promise.withResolvers<void>();
    onEnd = ended.resolve;
    const woken = Promise.race([ended.promise, deps.untilEvents(checkEveryMs, signal).catch(() => {})]);
    const idle = webhooks.filter(({ name }) => !running.has(name));
    // If the database is unavailable, the polls report it.
    const due = idle.length === 0 ? [] : await store.webhooks.findDueWebhooks(idle).catch(() => []);
    for (const { advertiserId, name } of due) {
      const webhook = idle.find((one) => one.name === name);
      if (webhook === undefined) continue;
      const delivery = run(webhook, advertiserId).finally(() => {
        running.delete(name);
        onEnd();
      });
      running.set(name, delivery);
    }
    await Promise.all([woken, rest(restMs)]);
  }
  await Promise.allSettled(running.values());
}
