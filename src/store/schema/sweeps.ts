// The tables of accounts and sweeps: the advertisers, the leases of workers, the cursors, sweeps with their evidence and coverage, the
// quarantine and the events.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, text, unique } from 'drizzle-orm/pg-core';
import { eventTypes } from '../../domain/webhook.ts';
import { at, bytea, dataTable, id64, intake, key, table } from './columns.ts';

// The values that CHECKs allow, which are also the types of the columns.
const lanes = ['live', 'backfill'] as const;
const axes = ['id', 'date'] as const;
const certificates = ['proven', 'assumed', 'unproven'] as const;
const risks = ['none', 'harmless', 'doubt'] as const;

/** Every request takes a number before it starts, so that answers can be ordered by when they were requested. */
export const requestSeq = intake.sequence('request_seq');
/** Numbers events in commit order, because a transaction takes its numbers under a lock per advertiser. */
export const eventSeq = intake.sequence('event_seq');
export const sweepSeq = intake.sequence('sweep_seq');

export const advertisers = table(
  'advertisers',
  {
    name: text().primaryKey(),
    advertiser_id: id64(),
    state: text({ enum: ['active', 'halted'] })
      .notNull()
      .default('active'),
    halt_kind: text({ enum: ['refused', 'mismatch'] }),
    reason: text(),
    agent_id: text(),
    learned: jsonb().notNull().default({}),
    late_ms: id64(),
    late_at: at(),
    retention_due: id64(),
    erased_through: id64(),
    unkept: id64(),
    kept_out: id64().notNull().default(sql`0`),
    created_at: at().notNull().defaultNow(),
    halted_at: at(),
    throttled_until: at(),
    throttled_ms: id64(),
    answered_url: text(),
    troubles: jsonb().notNull().default({}),
  },
  (t) => [
    unique('advertisers_advertiser_id').on(t.advertiser_id),
    check('advertisers_halted', sql`(${t.state} = 'halted') = (${t.halt_kind} IS NOT NULL)`),
  ],
);

export const leases = table(
  'leases',
  {
    name: text().notNull(),
    lane: text({ enum: lanes }).notNull(),
    owner: text().notNull(),
    epoch: id64().notNull(),
    expires_at: at().notNull(),
    done_at: at(),
  },
  (t) => [key(t.name, t.lane)],
);

/** The processes on this database. `intake migrate --finish` waits until none of an older version is alive. */
export const processes = intake.table('processes', {
  process: text().primaryKey(),
  version: text().notNull(),
  started_at: at().notNull(),
  seen_at: at().notNull(),
});

/** The endpoints of webhooks. A row begins with the settings that name the endpoint, or with its first event. */
export const webhooks = dataTable('webhooks', ['name'], {
  name: text().notNull(),
  position: id64().notNull().default(sql`0`),
  failures: integer().notNull().default(0),
  failing_since: at(),
  next_at: at(),
  stop: text({ enum: ['gone', 'lost'] }),
  last_answer: text(),
  answered_at: at(),
  removed_at: at(),
});

export const rateLimits = intake.table('rate_limits', {
  source: text().primaryKey(),
  next_at: at().notNull(),
});

export const cursors = intake.table('cursors', {
  advertiser_id: id64().primaryKey(),
  after_id: id64().notNull(),
  after_date: at(),
  as_of: at().notNull(),
});

export const quarantine = dataTable(
  'quarantine',
  ['fingerprint'],
  {
    fingerprint: bytea().notNull(),
    application_id: id64(),
    reason: text().notNull(),
    raw: jsonb(),
    raw_text: text(),
    first_seen_at: at().notNull().defaultNow(),
    last_seen_at: at().notNull().defaultNow(),
    seen: integer().notNull().default(1),
    sweep_id: id64().notNull(),
    resolved_at: at(),
    members: jsonb(),
    person: bytea(),
    identity: bytea(),
  },
  (t) => [index('quarantine_person').on(t.advertiser_id, t.person)],
);

export const events = dataTable('events', ['event_id'], {
  event_id: id64().notNull(),
  application_id: id64().notNull(),
  type: text({ enum: eventTypes }).notNull(),
  at: at().notNull(),
});

export const sweeps = dataTable(
  'sweeps',
  ['sweep_id'],
  {
    sweep_id: id64().notNull(),
    lane: text({ enum: lanes }).notNull(),
    purpose: text({ enum: ['live', 'recheck', 'backfill', 'witness'] }).notNull(),
    axis: text({ enum: axes }).notNull(),
    low: id64().notNull(),
    high: id64(),
    state: text({ enum: ['running', 'closed', 'open', 'dropped'] }).notNull(),
    certificate: text({ enum: certificates }),
    risk: text({ enum: risks }),
    reason: text(),
    facts: jsonb().notNull().default({}),
    started_at: at().notNull(),
    last_progress_at: at().notNull(),
    ended_at: at(),
    requests: integer().notNull().default(0),
    received: id64().notNull().default(sql`0`),
    added: id64().notNull().default(sql`0`),
    changed: id64().notNull().default(sql`0`),
    bytes: id64().notNull().default(sql`0`),
  },
  (t) => [
    index('sweeps_started').on(t.advertiser_id, t.started_at),
    index('sweeps_running').on(t.advertiser_id).where(sql`${t.state} = 'running'`),
  ],
);

export const ranges = dataTable('ranges', [sweeps, 'low'], {
  sweep_id: id64().notNull(),
  low: id64().notNull(),
  high: id64(),
  state: text({ enum: ['open', 'stuck'] }).notNull(),
  evidence: jsonb().notNull(),
  opened_at: at().notNull().defaultNow(),
});

export const coverage = dataTable('coverage', ['axis', 'low'], {
  axis: text({ enum: axes }).notNull(),
  low: id64().notNull(),
  high: id64(),
  certificate: text({ enum: certificates }).notNull(),
  risk: text({ enum: risks }).notNull(),
  reason: text().notNull(),
  as_of: at().notNull(),
  complete_through: at().notNull(),
  sweep_id: id64().notNull(),
  evidence_hash: bytea(),
});

export const evidence = dataTable('evidence', [sweeps, 'n'], {
  sweep_id: id64().notNull(),
  n: integer().notNull(),
  line: text().notNull(),
});

/** Stored ids that answers of a running sweep have lacked. Two answers that had room for an id and lack it show that it is gone. */
export const lacked = dataTable('lacked', [sweeps, 'application_id'], {
  sweep_id: id64().notNull(),
  application_id: id64().notNull(),
  gone: boolean().notNull(),
});

/** Ids for which the source fails while it serves others. Each is requested again after a pause that grows. */
export const unreadable = dataTable('unreadable', ['application_id'], {
  application_id: id64().notNull(),
  reason: text().notNull(),
  since: at().notNull().defaultNow(),
  tries: integer().notNull().default(1),
  next_at: at().notNull(),
  accepted_at: at(),
  accepted_by: text(),
});

export const recentPages = dataTable('recent_pages', ['seq'], {
  seq: id64().notNull(),
  lane: text().notNull(),
  lowest_id: id64().notNull(),
  highest_id: id64().notNull(),
  finished_at: at().notNull().defaultNow(),
});
