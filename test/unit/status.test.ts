// Status: which facts are problems, which of them are urgent, and what the one sentence says.
import { describe, expect, it } from 'vitest';
import { renderStatus } from '../../src/cli/render-status.ts';
import { tooManyAbsent } from '../../src/domain/coverage/certificate.ts';
import { toJson } from '../../src/domain/format.ts';
import { type AdvertiserStatus, type SweepFacts, toSweepResult } from '../../src/domain/status/advertiser-status.ts';
import { isHealthy, toReport, toStatus } from '../../src/domain/status/status.ts';
import { renderAgo } from '../../src/web/admin/page.ts';
import { anAdvertiserStatus } from '../support/database/filled-metrics.ts';

const day = 86_400_000;
const now = new Date('2026-11-15T10:00:00Z');
const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000);

const proven = {
  certificate: 'proven',
  risk: 'none',
  reason: 'read to its end',
  asOf: ago(1),
  completeThrough: ago(16),
} as const;

const well = anAdvertiserStatus(ago(1), {
  advertiserId: 9_007_199_254_740_993n,
  cursor: { afterId: 9_007_199_254_740_995n, asOf: ago(1) },
  newestSubmittedAt: ago(3),
  submittedAt: [ago(3).getTime()],
  verifiedSince: ago(29 * 24 * 60),
  attachments: { stored: 2 },
  coverage: proven,
});
const staleAfterMs = 20 * 60_000;
const proofLimitMs = 2 * day;
const sweep = {
  purpose: 'live',
  state: 'closed',
  certificate: 'assumed',
  risk: 'harmless',
  reason: 'normal poll; the next recheck brings the proof',
  startedAt: ago(1),
  endedAt: ago(1),
  requests: 1,
  added: 0,
  changed: 0,
} as const;
const running = {
  ...sweep,
  purpose: 'recheck',
  state: 'running',
  certificate: null,
  risk: null,
  endedAt: null,
} as const;
const statusOf = (...some: Partial<AdvertiserStatus>[]) =>
  toStatus(
    now,
    some.map((facts) => ({ ...well, ...facts })),
    { staleAfterMs, proofLimitMs, verifyWithinMs: 30 * day },
  );

describe('the headline', () => {
  it('is one sentence', () => {
    expect(statusOf({}).headline).toBe('All is well: 1 application of 1 advertiser stored.');
    expect(statusOf({}, { name: 'south', applications: 20_000 }).headline).toBe(
      'All is well: 20,001 applications of 2 advertisers stored.',
    );
    expect(statusOf({ quarantined: 2 }).headline).toContain('One problem needs attention;');
    expect(statusOf({ quarantined: 2, readAt: null }).headline).toContain('One problem needs attention now');
    expect(statusOf().headline).toBe('No advertiser has been read yet.');
  });

  it('counts the files that a sync has left in the queue', () => {
    const left = { waiting: 31, due: 30, oldestDueAt: ago(2), notThere: 1 };
    expect(statusOf(left).headline).toBe(
      'All is well: 1 application of 1 advertiser stored; 30 files wait to be fetched.',
    );
    expect(statusOf(left, { name: 'south', waiting: 1 }).headline).toContain('31 files wait to be fetched.');
    expect(statusOf({ waiting: 1 }).headline).toContain('1 file waits to be fetched.');
    expect(statusOf({ waiting: 2, notThere: 2 }).headline).not.toContain('fetched');
  });
});

describe('urgent is', () => {
  it.each<[string, Partial<AdvertiserStatus>, string]>([
    ['an advertiser that was never read', { readAt: null, cursor: null }, 'intake sync'],
    [
      'an advertiser whose first sweep has no cursor yet, because the newest applications come first',
      { readAt: null, cursor: null, lastSweep: running },
      'intake sync',
    ],
    ['one that was read too long ago', { readAt: ago(21) }, 'intake doctor'],
    ['a refused credential', { halt: { kind: 'refused', reason: 'Refused.', since: ago(5) } }, 'intake doctor'],
    [
      'an answer of another account',
      { halt: { kind: 'mismatch', reason: 'Of another.', since: ago(5) } },
      'intake unhalt --advertiser north',
    ],
    [
      'an account that is not proven complete',
      { coverage: { ...proven, certificate: 'unproven', risk: 'doubt', completeThrough: null }, openRanges: 1 },
      'intake backfill --gaps',
    ],
    [
      'an account of which too many applications are gone at once',
      { coverage: { ...proven, certificate: 'unproven', risk: 'doubt', reason: tooManyAbsent }, openRanges: 1 },
      'intake accept-deletions',
    ],
    ['an account of which nothing was read to its end', { coverage: null, openRanges: 1 }, 'intake backfill --gaps'],
    ['a proof that is older than two rechecks', { coverage: { ...proven, asOf: ago(2_881) } }, 'intake sync --recheck'],
    ['a file that could be fetched for over an hour', { due: 3, oldestDueAt: ago(61) }, 'intake sync'],
  ])('%s', (_, facts, command) => {
    const status = statusOf(facts);
    const isFirstSweep = facts.lastSweep?.state === 'running';
    const what = isFirstSweep ? 'The first sweep has not finished.' : expect.any(String);
    expect(status.problems).toMatchObject([{ advertiser: 'north', what, command, urgent: true }]);
    expect(isHealthy(status)).toBe(false);
  });

  it('not: what can wait until tomorrow', () => {
    const attachments = { given_up: 1, rejected: 4 };
    const status = statusOf({ quarantined: 1, attachments, oldestDueAt: ago(59), readAt: ago(19) });
    expect(status.problems.map(({ urgent, command }) => `${urgent} ${command}`)).toEqual([
      'false intake quarantine list',
      'false intake retry --state given_up',
      'false intake retry --state rejected',
    ]);
    expect(isHealthy(status)).toBe(true);
  });

  it.each<[string, Partial<AdvertiserStatus>, string | RegExp, string?]>([
    [
      'an assumption with a doubt',
      { coverage: { ...proven, certificate: 'assumed', risk: 'doubt', reason: 'answers came from a cache' } },
      'Completeness is in doubt: answers came from a cache.',
      'intake sync --recheck',
    ],
    [
      'a poll that ends with a doubt',
      { lastSweep: { ...sweep, risk: 'doubt', reason: 'pages became shorter' } },
      'The last sweep is in doubt: pages became shorter.',
      'intake sync --recheck',
    ],
    ['a first sweep that is under way', { coverage: null, openRanges: 1, lastSweep: running }, /./],
    [
      'retention that its brake holds back',
      { retentionDue: 1_200 },
      'RETENTION would erase 1,200 records at once; nothing was erased.',
      'intake erase --retention --dry-run --advertiser north',
    ],
    ['an erasure that waits for its receipt', { erasingSince: ago(61) }, /1h 1m/],
    [
      'a damaged file, fetched again or asked for',
      { damagedBlobs: 1 },
      /^1 file is damaged or gone .+ intake retry/,
      'intake sync',
    ],
    [
      'versions that the storage keeps',
      { keptDeleted: 2 },
      /^2 files are deleted.+ keeps versions .+ infected/,
      'intake doctor',
    ],
    [
      'stored bytes that were not read again in time',
      { verifiedSince: ago(30 * 24 * 60 + 61) },
      'Stored bytes have not been read again for 30d 1h, the limit is 30d (VERIFY_WITHIN).',
      'intake verify --full --advertiser north',
    ],
  ])('not: %s', (_, facts, what, command) => {
    const { problems } = statusOf(facts);
    expect(problems).toMatchObject([{ urgent: false, ...(command && { command }) }]);
    expect(problems[0]?.what).toMatch(what);
  });

  it('not: an extract that is older than its schedule allows, or was never written', () => {
    const extracted = (publishedAt: Date | null) =>
      toStatus(now, [well], { extract: { location: 's3://lake/intake', publishedAt, withinMs: 2 * day } });
    expect(extracted(ago(2 * 24 * 60)).problems).toEqual([]);
    const old = extracted(ago(2 * 24 * 60 + 61));
    expect(old.problems).toEqual([
      {
        advertiser: null,
        what: 'The extract at s3://lake/intake is 2d 1h old, the limit is 2d (EXTRACT_WITHIN).',
        command: 'intake extract --since-last',
        urgent: false,
      },
    ]);
    expect(toReport(old)).toMatchObject({ extract: { publishedAt: ago(2 * 24 * 60 + 61), withinMs: 2 * day } });
    expect(extracted(null).problems).toMatchObject([{ what: 'Nothing has been extracted to s3://lake/intake yet.' }]);
  });

  it('not without a limit: what was read, erased or checked within its time', () => {
    for (const facts of [{ erasingSince: ago(59) }, { verifiedSince: ago(30 * 24 * 60) }])
      expect(statusOf(facts).problems).toEqual([]);
    expect(toStatus(now, [{ ...well, verifiedSince: ago(90 * 24 * 60) }]).problems).toEqual([]);
    expect(renderStatus(statusOf({}))).toMatch(/stored bytes +│ all read within the last 29d; the limit is 30d/);
    expect(renderStatus(statusOf({ verifiedSince: null }))).toMatch(/stored bytes +│ none/);
  });

  it('not: an old poll where nothing reads by schedule', () => {
    expect(toStatus(now, [{ ...well, readAt: ago(10_000) }]).problems).toEqual([]);
    const off = { proofLimitMs: 14 * day };
    const old = toStatus(now, [{ ...well, coverage: { ...proven, asOf: ago(15 * 24 * 60) } }], off);
    expect(old.problems[0]?.what).toContain('The last proof is 15d old, the limit is 14d: no recheck has completed');
  });

  it('put first, whichever account it concerns', () => {
    const status = statusOf({ quarantined: 1 }, { name: 'south', readAt: null });
    expect(status.problems.map(({ advertiser }) => advertiser)).toEqual(['south', 'north']);
  });
});

it.each<[string, Partial<AdvertiserStatus>]>([
  ['a poll, which proves nothing by itself', { lastSweep: sweep }],
  ['a harmless assumption', { coverage: { ...proven, certificate: 'assumed', risk: 'harmless' } }],
  ['a backfill by date, which cannot prove', { lastSweep: { ...sweep, purpose: 'backfill', risk: 'doubt' } }],
  ['an infected file, which gets no bytes whatever is run', { attachments: { stored: 2, infected: 3 } }],
  ['a proof of the night before last', { coverage: { ...proven, asOf: ago(2_879) } }],
])('no problem is %s', (_, facts) => {
  expect(statusOf(facts).headline).toMatch(/^All is well/);
});

describe('the result of a sweep', () => {
  it.each<[string, Partial<SweepFacts>, string, string | null]>([
    ['of a normal poll is no certificate', {}, 'good: up to date', null],
    ['of a poll that saw something wrong', { risk: 'doubt', reason: 'why' }, 'fair: in doubt', 'why'],
    ['of a poll that left gaps', { certificate: 'unproven', risk: 'doubt', reason: 'why' }, 'bad: incomplete', 'why'],
    ['of a proof', { purpose: 'recheck', certificate: 'proven', risk: 'none', reason: 'why' }, 'good: proven', 'why'],
    ['of a small account', { purpose: 'recheck', reason: 'few' }, 'good: assumed', 'few'],
    ['of dates', { purpose: 'backfill', risk: 'doubt', reason: 'why' }, 'fair: assumed, in doubt', 'why'],
    ['that runs', { state: 'running', certificate: null, risk: null, reason: null }, 'plain: running', null],
  ])('%s', (_, facts, says, note) => {
    const result = toSweepResult({ ...sweep, ...facts });
    expect([`${result.mood}: ${result.word}`, result.note]).toEqual([says, note]);
  });

  it('stands in `intake status` in plain words', () => {
    expect(renderStatus(statusOf({ lastSweep: sweep }))).toMatch(
      /last sweep +│ poll 1m ago: up to date, 0 new, 0 changed, 1 request +│/,
    );
  });
});

it('`intake status` says what an infected file is', () => {
  expect(renderStatus(statusOf({ attachments: { stored: 7, infected: 2, given_up: 1 } }))).toContain(
    '7 stored, 2 infected (the source reports a virus; no bytes are stored), 1 given up',
  );
});

it('what happened within a second is told as such, by the page and by `intake status`', async () => {
  expect(String(await renderAgo(now, now))).toContain('>just now</time>');
  expect(String(await renderAgo(ago(2), now))).toContain('>2m ago</time>');
  expect(renderStatus(statusOf({ readAt: new Date(now.getTime() - 999) }))).toMatch(/last poll +│ just now +│/);
});

it('for programs status keeps every digit of an id, says whether it is healthy, and leaves arrival times out', () => {
  const report = JSON.parse(toJson(toReport(statusOf({}))));
  expect(report).toMatchObject({
    healthy: true,
    advertisers: [{ advertiserId: '9007199254740993', cursor: { afterId: '9007199254740995' } }],
  });
  expect(report.advertisers[0]).not.toHaveProperty('submittedAt');
});

describe('what a worker waits for', () => {
  const wait = {
    advertiser: 'north',
    task: 'reading',
    dependency: 'source',
    reason: 'No route.',
    since: ago(0.5),
  } as const;
  const stale = { ...well, readAt: ago(90) };
  const waiting = (common: Parameters<typeof toStatus>[2]) => toStatus(now, [stale], { staleAfterMs, ...common });

  it('is named at once, in place of the question whether a worker runs, and is urgent after a minute', () => {
    const fresh = waiting({ waits: [wait] });
    const what = 'Reading has been waiting for the source since 2026-11-15 09:59:30 UTC: No route.';
    expect(fresh.problems).toEqual([{ advertiser: 'north', what, command: 'intake doctor', urgent: false }]);
    expect(isHealthy(fresh)).toBe(true);
    const lasting = waiting({ waits: [{ ...wait, since: ago(1) }] });
    expect(isHealthy(lasting)).toBe(false);
  });

  it('says nothing of an advertiser that does not wait', () => {
    const { problems } = waiting({ waits: [{ ...wait, advertiser: 'south' }] });
    expect(problems.map(({ what }) => what)).toContainEqual(expect.stringContaining('is a worker running?'));
    const storage = waiting({ waits: [{ ...wait, task: 'downloads', dependency: 'storage' }] });
    expect(storage.problems.map(({ advertiser, what }) => [advertiser, what])).toEqual([
      ['north', expect.stringContaining('is a worker running?')],
      ['north', expect.stringContaining('Downloads have been waiting for the storage')],
    ]);
  });

  it('does not call files infected that may only be unused', () => {
    const { problems } = waiting({ waits: [{ ...wait, task: 'deletion', dependency: 'storage', reason: 'Denied.' }] });
    expect(problems.map(({ what }) => what)).toContain(
      'Deletion has been waiting for the storage since 2026-11-15 09:59:30 UTC: Infected, erased or unused files are still there. Denied.',
    );
  });

  it('is one problem where several advertisers met the same', () => {
    const south = { ...wait, advertiser: 'south', since: ago(2) };
    const { problems } = waiting({ waits: [wait, south, { ...wait, advertiser: 'west' }] });
    expect(problems).toEqual([
      {
        advertiser: null,
        what: 'Reading has been waiting for the source since 2026-11-15 09:58:00 UTC (3 advertisers): No route.',
        command: 'intake doctor',
        urgent: true,
      },
    ]);
  });
});
