// The tables of prefill, which candidates use. See applications.ts for how these files are used.
import { sql } from 'drizzle-orm';
import { check, date, index, jsonb, primaryKey, text, unique, uuid } from 'drizzle-orm/pg-core';
import { at, bytea, id64, intake, isOneOf, refersTo } from './columns.ts';

// The values that CHECKs allow, which are also the types of the columns.
const outcomes = ['started', 'denied', 'expired', 'failed', 'prefilled', 'redeemed', 'lapsed', 'erased'] as const;

export const prefills = intake.table(
  'prefills',
  {
    advertiserId: id64('advertiser_id').notNull(),
    prefillId: uuid('prefill_id').notNull(),
    outcome: text({ enum: outcomes }).notNull().default('started'),
    reason: text(),
    formUrl: text('form_url').notNull(),
    returnUrl: text('return_url').notNull(),
    positionTitle: text('position_title'),
    positionUri: text('position_uri'),
    countryCode: text('country_code'),
    postalCode: text('postal_code'),
    profile: jsonb(),
    profileText: text('profile_text'),
    notes: jsonb(),
    firstName: text('first_name'),
    lastName: text('last_name'),
    email: text(),
    phone: text(),
    personKey: text('person_key'),
    personKeys: text('person_keys').array(),
    resumeSha256: text('resume_sha256'),
    resumeSizeBytes: id64('resume_size_bytes'),
    resumeContentType: text('resume_content_type'),
    resumeFileName: text('resume_file_name'),
    resumeReason: text('resume_reason'),
    handleHash: bytea('handle_hash'),
    createdAt: at('created_at').notNull().defaultNow(),
    authorizedAt: at('authorized_at'),
    prefilledAt: at('prefilled_at'),
    expiresAt: at('expires_at'),
    resumePutUntil: at('resume_put_until'),
    resumeStoredAt: at('resume_stored_at'),
    redeemedAt: at('redeemed_at'),
    endedAt: at('ended_at'),
  },
  (t) => [
    primaryKey({ name: 'prefills_pkey', columns: [t.advertiserId, t.prefillId] }),
    unique('prefills_handle').on(t.advertiserId, t.handleHash),
    index('prefills_created').on(t.advertiserId, t.createdAt),
    index('prefills_person').on(t.advertiserId, t.personKey),
    // Partial indexes for maintenance: it looks for a small part of a table that keeps growing.
    index('prefills_open').on(t.createdAt).where(sql`${t.outcome} IN ('started', 'prefilled')`),
    // Prefills that ended without a profile. Anyone can start one, so maintenance counts them in prefill_days and deletes them.
    index('prefills_ended').on(t.endedAt).where(sql`${t.outcome} IN ('denied', 'expired', 'failed')`),
    index('prefills_blob').on(t.advertiserId, t.resumeSha256).where(sql`${t.resumeSha256} IS NOT NULL`),
    check('prefills_outcome', isOneOf(t.outcome, outcomes)),
    check('prefills_kept', sql`${t.outcome} IN ('prefilled', 'redeemed') = (${t.profile} IS NOT NULL)`),
    check(
      'prefills_resume',
      sql`${t.resumeStoredAt} IS NULL OR ${t.resumeSha256} IS NOT NULL OR ${t.resumeReason} IS NOT NULL OR ${t.outcome} IN ('lapsed', 'erased')`,
    ),
  ],
);

export const prefillDays = intake.table(
  'prefill_days',
  {
    advertiserId: id64('advertiser_id').notNull(),
    day: date({ mode: 'date' }).notNull(),
    started: id64('started').notNull().default(sql`0`),
    authorized: id64('authorized').notNull().default(sql`0`),
    denied: id64('denied').notNull().default(sql`0`),
    failed: id64('failed').notNull().default(sql`0`),
    expired: id64('expired').notNull().default(sql`0`),
  },
  (t) => [primaryKey({ name: 'prefill_days_pkey', columns: [t.advertiserId, t.day] })],
);

export const oauthStates = intake.table(
  'oauth_states',
  {
    advertiserId: id64('advertiser_id').notNull(),
    stateHash: bytea('state_hash').notNull(),
    bindingHash: bytea('binding_hash').notNull(),
    prefillId: uuid('prefill_id').notNull(),
    createdAt: at('created_at').notNull().defaultNow(),
    expiresAt: at('expires_at').notNull(),
    usedAt: at('used_at'),
  },
  (t) => [
    primaryKey({ name: 'oauth_states_pkey', columns: [t.advertiserId, t.stateHash] }),
    refersTo('oauth_states_prefill', t, prefills, 'advertiserId', 'prefillId').onDelete('cascade'),
    index('oauth_states_expires').on(t.expiresAt),
  ],
);
