// Webhooks without a database: what a message says, what an answer means, when it is tried again, and where it may go.
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { toDelay } from '../../src/domain/trouble.ts';
import {
  type Failing,
  findFailure,
  retryForMs,
  toMessage,
  toWebhookProblems,
  toWebhookState,
  type WebhookEvent,
  type WebhookStatus,
} from '../../src/domain/webhook.ts';
import { createPublicLookup, isPublic, sign } from '../../src/webhooks/send.ts';
import { newWebhookSecret, webhookSecret } from '../support/servers/receiver.ts';

const event: WebhookEvent = {
  eventId: 4001n,
  advertiserId: 20000001n,
  applicationId: 9_007_199_254_740_993n,
  type: 'application.received',
  at: new Date('2026-11-16T04:23:41.519Z'),
  state: 'stored',
  readAt: new Date('2026-11-17T00:00:00Z'),
  application: null,
};

describe('a message', () => {
  test('holds type, time, ids and state, and ids beyond 2^53 exactly', () => {
    expect(toMessage(event, false).body).toBe(
      '{"type":"application.received","timestamp":"2026-11-16T04:23:41.519Z","data":{"event_id":4001,"advertiser_id":20000001,"application_id":9007199254740993,"state":"stored"}}',
    );
  });

  test('holds the row of the application where the endpoint asked for it, and null for an erased one', () => {
    const row = '{"job_reference":"A1"}';
    expect(JSON.parse(toMessage({ ...event, application: row }, true).body).data.application).toEqual(JSON.parse(row));
    expect(JSON.parse(toMessage(event, true).body).data.application).toBeNull();
    expect(toMessage({ ...event, application: row }, false).body).not.toContain('A1');
  });

  test('has an id that stays the same, and differs for the same number after a restore', () => {
    expect(toMessage(event, false).id).toBe(toMessage({ ...event, state: 'ready' }, true).id);
    expect(toMessage({ ...event, at: new Date(1) }, false).id).not.toBe(toMessage(event, false).id);
  });
});

describe('a signature', () => {
  const seconds = Math.floor(Date.now() / 1_000);
  const toHeaders = (secrets: readonly string[], body: string) => ({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(seconds),
    'webhook-signature': sign(secrets, 'evt_1', seconds, body),
  });

  test("is verified by somebody else's code, and not after one byte has changed", () => {
    const { body } = toMessage(event, false);
    const headers = toHeaders([webhookSecret], body);
    expect(new Webhook(webhookSecret).verify(body, headers)).toBeTruthy();
    expect(() => new Webhook(webhookSecret).verify(body.replace('4001', '4002'), headers)).toThrow();
    expect(() => new Webhook(newWebhookSecret).verify(body, headers)).toThrow();
  });

  test('of two secrets is verified by a receiver that knows either', () => {
    const headers = toHeaders([newWebhookSecret, webhookSecret], '{}');
    for (const known of [webhookSecret, newWebhookSecret]) {
      expect(new Webhook(known).verify('{}', headers)).toEqual({});
    }
  });
});

describe('an answer', () => {
  const first = { failures: 0, forMs: 0 };

  test.each([200, 201, 202, 204, 299])('of %i means delivered', (status) => {
    expect(findFailure({ status }, first, 0.5)).toBeNull();
  });

  test.each([301, 302, 307, 400, 401, 404, 410, 413, 429, 500, 503])('of %i means that it is tried again', (status) => {
    expect(findFailure({ status }, first, 0.5)).toMatchObject({ isGone: status === 410 });
  });

  test('with Retry-After is heeded, up to a day', () => {
    const wait = (seconds: number) =>
      findFailure({ status: 429, retryAfterMs: toDelay(seconds * 1_000) }, first, 0.5)?.waitMs;
    expect([wait(7), wait(999_999_999)]).toEqual([7_000, 86_400_000]);
  });

  test('with a Retry-After of a second for ever is not sent a message a second', () => {
    const wait = (failing: Failing) =>
      findFailure({ status: 429, retryAfterMs: toDelay(1_000) }, failing, 0.5)?.waitMs ?? 0;
    expect(wait(first)).toBeLessThan(5_000);
    expect(wait({ failures: 20, forMs: retryForMs / 2 })).toBeGreaterThan(600_000);
    expect(wait({ failures: 200, forMs: retryForMs })).toBeGreaterThanOrEqual(3 * 3_600_000);
  });
});

describe('the schedule of retries', () => {
  /** The attempts of an endpoint that never answers, as milliseconds since the first. */
  const play = (random: number) => {
    const attempts: number[] = [];
    for (let at = 0; at < 2 * retryForMs; ) {
      attempts.push(at);
      const failing = { failures: attempts.length - 1, forMs: at };
      at += findFailure({ status: 500 }, failing, random)?.waitMs ?? Number.NaN;
    }
    return attempts;
  };

  test('begins within seconds, never waits more than an hour for 75 hours, then goes on every few hours', () => {
    for (const random of [0.01, 0.5, 1]) {
      const attempts = play(random);
      const waits = attempts.slice(1).map((at, index) => at - (attempts[index] ?? 0));
      expect(waits[0]).toBeLessThanOrEqual(5_000);
      const isHalted = (index: number) => (attempts[index] ?? 0) >= retryForMs;
      const [failing, halted] = [waits.filter((_, n) => !isHalted(n)), waits.filter((_, n) => isHalted(n))];
      expect(Math.max(...failing)).toBeLessThanOrEqual(3_600_000);
      expect(Math.min(...halted)).toBeGreaterThanOrEqual(3 * 3_600_000);
      expect(Math.max(...halted)).toBeLessThanOrEqual(6 * 3_600_000);
    }
  });

  test('has jitter: endpoints that failed together are not tried together', () => {
    expect(play(0.4).slice(2, 12)).not.toEqual(play(0.6).slice(2, 12));
  });
});

describe('an address', () => {
  const closed = `0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.9.9.9 168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255
    192.168.1.1 192.0.0.1 198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:7f00:1 64:ff9b::7f00:1
    fe80::1 fe80::1%eth0 fc00::1 fd12:3456::1 ff02::1 2001:db8::1 2002:7f00:1:: 2001:0:1::1 localhost`;
  const open = '8.8.8.8 172.32.0.1 100.128.0.1 2606:4700::1111 2a00:1450:4001::1';

  test('is public or not', () => {
    expect([...closed.split(/\s+/), ''].filter((address) => isPublic(address))).toEqual([]);
    expect(open.split(' ').filter((address) => !isPublic(address))).toEqual([]);
  });

  test('of a name that changes: the socket gets only what was checked, from one look-up', async () => {
    const answers = [['8.8.8.8', '127.0.0.1'], ['169.254.169.254']];
    let lookUps = 0;
    const lookup = createPublicLookup(async () => answers[lookUps++] ?? []);
    const connectTo = () =>
      new Promise((resolve) => lookup('hook.example.com', { all: true }, (error, all) => resolve(error?.code ?? all)));
    expect(await connectTo()).toEqual([{ address: '8.8.8.8', family: 4 }]);
    expect(await connectTo()).toBe('EPRIVATE');
    expect(lookUps).toBe(2);
  });
});

describe('the state of an endpoint', () => {
  const now = new Date('2026-11-18T00:00:00Z');
  const ago = (ms: number) => new Date(now.getTime() - ms);
  const level: WebhookStatus = {
    advertiser: 'acme',
    name: 'ats',
    position: 10n,
    behind: 0,
    behindSince: null,
    failures: 0,
    failingSince: null,
    nextAt: null,
    stop: null,
    lastAnswer: 'it answered 204',
    answeredAt: ago(1_000),
  };
  const failing = (ms: number): WebhookStatus => ({
    ...level,
    ...{ behind: 3, behindSince: ago(ms), failures: 2, failingSince: ago(ms), lastAnswer: 'it answered 500' },
  });

  test('is a problem after an hour, and urgent once it is halted, gone or has lost events', () => {
    const seen = [level, failing(60_000), failing(7_200_000), failing(retryForMs), { ...level, stop: 'gone' as const }];
    expect(seen.map((one) => toWebhookState(one, now))).toEqual([
      ...['up to date', 'failing', 'failing', 'halted', 'disabled'],
    ]);
    const problems = [...seen, { ...level, stop: 'lost' as const }].map((one) => toWebhookProblems(one, now));
    expect(problems.map(([problem]) => problem?.urgent)).toEqual([undefined, undefined, false, true, true, true]);
    expect(problems[2]?.[0]).toMatchObject({
      what: 'Webhook ats is 2h behind: it answered 500; 3 events wait.',
      command: 'intake webhook test ats',
    });
    expect(problems[3]?.[0]?.command).toBe('intake retry --webhook ats');
  });
});
