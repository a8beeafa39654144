// The tables of accounts and sweeps: the advertisers, the leases of workers, the cursors, sweeps with their evidence and coverage, the
// quarantine and the events. See applications.ts for how these files are used.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, primaryKey, text, unique } from 'drizzle-orm/pg-core';
import { eventTypes } from '../../domain/webhook.ts';
import { at, bytea, id64, intake, isOneOf, refersTo } from './columns.ts';

// The values that CHECKs allow, which are also the types of the columns.
const advertiserStates = ['active', 'halted'] as const;
const haltKinds = ['refused', 'mismatch'] as const;
const lanes = ['live', 'backfill'] as const;
const purposes = ['live', 'recheck', 'backfill', 'witness'] as const;
const axes = ['id', 'date'] as const;
const sweepStates = ['running', 'closed', 'open', 'dropped'] as const;
const certificates = ['proven', 'assumed', 'unproven'] as const;
const risks = ['none', 'harmless', 'doubt'] as const;
const rangeStates = ['open', 'stuck'] as const;
const webhookStops = ['gone', 'lost'] as const;

/** Every request takes a number before it starts, so that answers can be ordered by when they were requested. */
export const requestSeq = intake.sequence('request_seq');
/** Numbers events in commit order, because a transaction takes its numbers under a lock per advertiser. */
export const eventSeq = intake.sequence('event_seq');
export const sweepSeq = intake.sequence('sweep_seq');

export const advertisers = intake.table(
  'advertisers',
  {
    name: text().primaryKey(),
    advertiserId: id64('advertiser_id'),
    state: text({ enum: advertiserStates }).notNull().default('active'),
    haltKind: text('halt_kind', { enum: haltKinds }),
    reason: text(),
    agentId: text('agent_id'),
    learned: jsonb().notNull().default({}),
    lateMs: id64('late_ms'),
    lateAt: at('late_at'),
    retentionDue: id64('retention_due'),
    erasedThrough: id64('erased_through'),
    unkept: id64('unkept'),
    keptOut: id64('kept_out').notNull().default(sql`0`),
    createdAt: at('created_at').notNull().defaultNow(),
    haltedAt: at('halted_at'),
    throttledUntil: at('throttled_until'),
    throttledMs: id64('throttled_ms'),
    answeredUrl: text('answered_url'),
    troubles: jsonb().notNull().default({}),
  },
  (t) => [
    unique('advertisers_advertiser_id').on(t.advertiserId),
    check('advertisers_state', isOneOf(t.state, advertiserStates)),
    check('advertisers_halt_kind', isOneOf(t.haltKind, haltKinds)),
    check('advertisers_halted', sql`(${t.state} = 'halted') = (${t.haltKind} IS NOT NULL)`),
  ],
);

export const leases = intake.table(
  'leases',
  {
    name: text().notNull(),
    lane: text({ enum: lanes }).notNull(),
    owner: text().notNull(),
    epoch: id64('epoch').notNull(),
    expiresAt: at('expires_at').notNull(),
    doneAt: at('done_at'),
  },
  (t) => [primaryKey({ name: 'leases_pkey', columns: [t.name, t.lane] }), check('leases_lane', isOneOf(t.lane, lanes))],
);

/** The processes on this database. `intake migrate --finish` waits until none of an older version is alive. */
export const processes = intake.table('processes', {
  process: text().primaryKey(),
  version: text().notNull(),
  startedAt: at('started_at').notNull(),
  seenAt: at('seen_at').notNull(),
});
/** The endpoints of webhooks. A row begins with the settings that name the endpoint, or with its first event. */
export const webhooks = intake.table(
  'webhooks',
  {
    advertiserId: id64('advertiser_id').notNull(),
    name: text().notNull(),
    position: id64('position').notNull().default(sql`0`),
    failures: integer().notNull().default(0),
    failingSince: at('failing_since'),
    nextAt: at('next_at'),
    stop: text({ enum: webhookStops }),
    lastAnswer: text('last_answer'),
    answeredAt: at('answered_at'),
    removedAt: at('removed_at'),
  },
  (t) => [
    primaryKey({ name: 'webhooks_pkey', columns: [t.advertiserId, t.name] }),
    check('webhooks_stop', isOneOf(t.stop, webhookStops)),
  ],
);

export const rateLimits = intake.table('rate_limits', {
  source: text().primaryKey(),
  nextAt: at('next_at').notNull(),
});

export const cursors = intake.table('cursors', {
  advertiserId: id64('advertiser_id').primaryKey(),
  afterId: id64('after_id').notNull(),
  afterDate: at('after_date'),
  asOf: at('as_of').notNull(),
});

export const quarantine = intake.table(
  'quarantine',
  {
    advertiserId: id64('advertiser_id').notNull(),
    fingerprint: bytea().notNull(),
    applicationId: id64('application_id'),
    reason: text().notNull(),
    raw: jsonb(),
    rawText: text('raw_text'),
    firstSeenAt: at('first_seen_at').notNull().defaultNow(),
    lastSeenAt: at('last_seen_at').notNull().defaultNow(),
    seen: integer().notNull().default(1),
    sweepId: id64('sweep_id').notNull(),
    resolvedAt: at('resolved_at'),
    members: jsonb(),
    person: bytea(),
    identity: bytea(),
  },
  (t) => [
    primaryKey({ name: 'quarantine_pkey', columns: [t.advertiserId, t.fingerprint] }),
    index('quarantine_person').on(t.advertiserId, t.person),
  ],
);

export const events = intake.table(
  'events',
  {
    advertiserId: id64('advertiser_id').notNull(),
    eventId: id64('event_id').notNull(),
    applicationId: id64('application_id').notNull(),
    type: text({
      enum: eventTypes,
    }).notNull(),
    at: at('at').notNull(),
  },
  (t) => [
    primaryKey({ name: 'events_pkey', columns: [t.advertiserId, t.eventId] }),
    check('events_type', isOneOf(t.type, eventTypes)),
  ],
);

export const sweeps = intake.table(
  'sweeps',
  {
    advertiserId: id64('advertiser_id').notNull(),
    sweepId: id64('sweep_id').notNull(),
    lane: text({ enum: lanes }).notNull(),
    purpose: text({ enum: purposes }).notNull(),
    axis: text({ enum: axes }).notNull(),
    low: id64('low').notNull(),
    high: id64('high'),
    state: text({ enum: sweepStates }).notNull(),
    certificate: text({ enum: certificates }),
    risk: text({ enum: risks }),
    reason: text(),
    facts: jsonb().notNull().default({}),
    startedAt: at('started_at').notNull(),
    lastProgressAt: at('last_progress_at').notNull(),
    endedAt: at('ended_at'),
    requests: integer().notNull().default(0),
    received: id64('received').notNull().default(sql`0`),
    added: id64('added').notNull().default(sql`0`),
    changed: id64('changed').notNull().default(sql`0`),
    bytes: id64('bytes').notNull().default(sql`0`),
  },
  (t) => [
    primaryKey({ name: 'sweeps_pkey', columns: [t.advertiserId, t.sweepId] }),
    index('sweeps_started').on(t.advertiserId, t.startedAt),
    index('sweeps_running').on(t.advertiserId).where(sql`${t.state} = 'running'`),
    check('sweeps_lane', isOneOf(t.lane, lanes)),
    check('sweeps_purpose', isOneOf(t.purpose, purposes)),
    check('sweeps_axis', isOneOf(t.axis, axes)),
    check('sweeps_state', isOneOf(t.state, sweepStates)),
    check('sweeps_certificate', isOneOf(t.certificate, certificates)),
    check('sweeps_risk', isOneOf(t.risk, risks)),
  ],
);

export const ranges = intake.table(
  'ranges',
  {
    advertiserId: id64('advertiser_id').notNull(),
    sweepId: id64('sweep_id').notNull(),
    low: id64('low').notNull(),
    high: id64('high'),
    state: text({ enum: rangeStates }).notNull(),
    evidence: jsonb().notNull(),
    openedAt: at('opened_at').notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ name: 'ranges_pkey', columns: [t.advertiserId, t.sweepId, t.low] }),
    refersTo('ranges_sweep', t, sweeps, 'advertiserId', 'sweepId'),
    check('ranges_state', isOneOf(t.state, rangeStates)),
  ],
);

export const coverage = intake.table(
  'coverage',
  {
    advertiserId: id64('advertiser_id').notNull(),
    axis: text({ enum: axes }).notNull(),
    low: id64('low').notNull(),
    high: id64('high'),
    certificate: text({ enum: certificates }).notNull(),
    risk: text({ enum: risks }).notNull(),
    reason: text().notNull(),
    asOf: at('as_of').notNull(),
    completeThrough: at('complete_through').notNull(),
    sweepId: id64('sweep_id').notNull(),
    evidenceHash: bytea('evidence_hash'),
  },
  (t) => [
    primaryKey({ name: 'coverage_pkey', columns: [t.advertiserId, t.axis, t.low] }),
    check('coverage_axis', isOneOf(t.axis, axes)),
    check('coverage_certificate', isOneOf(t.certificate, certificates)),
    check('coverage_risk', isOneOf(t.risk, risks)),
  ],
);

export const evidence = intake.table(
  'evidence',
  {
    advertiserId: id64('advertiser_id').notNull(),
    sweepId: id64('sweep_id').notNull(),
    n: integer().notNull(),
    line: text().notNull(),
  },
  (t) => [
    primaryKey({ name: 'evidence_pkey', columns: [t.advertiserId, t.sweepId, t.n] }),
    refersTo('evidence_sweep', t, sweeps, 'advertiserId', 'sweepId'),
  ],
);

/** Stored ids that answers of a running sweep have lacked. Two answers that had room for an id and lack it show that it is gone. */
export const lacked = intake.table(
  'lacked',
  {
    advertiserId: id64('advertiser_id').notNull(),
    sweepId: id64('sweep_id').notNull(),
    applicationId: id64('application_id').notNull(),
    gone: boolean().notNull(),
  },
  (t) => [
    primaryKey({ name: 'lacked_pkey', columns: [t.advertiserId, t.sweepId, t.applicationId] }),
    refersTo('lacked_sweep', t, sweeps, 'advertiserId', 'sweepId'),
  ],
);

/** Ids for which the source fails while it serves others. Each is requested again after a pause that grows. */
export const unreadable = intake.table(
  'unreadable',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    reason: text().notNull(),
    since: at('since').notNull().defaultNow(),
    tries: integer().notNull().default(1),
    nextAt: at('next_at').notNull(),
    acceptedAt: at('accepted_at'),
    acceptedBy: text('accepted_by'),
  },
  (t) => [primaryKey({ name: 'unreadable_pkey', columns: [t.advertiserId, t.applicationId] })],
);

export const recentPages = intake.table(
  'recent_pages',
  {
    advertiserId: id64('advertiser_id').notNull(),
    seq: id64('seq').notNull(),
    lane: text().notNull(),
    lowestId: id64('lowest_id').notNull(),
    highestId: id64('highest_id').notNull(),
    finishedAt: at('finished_at').notNull().defaultNow(),
  },
  (t) => [primaryKey({ name: 'recent_pages_pkey', columns: [t.advertiserId, t.seq] })],
);
