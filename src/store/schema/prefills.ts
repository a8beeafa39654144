// The tables of prefill, which candidates use.
import { sql } from 'drizzle-orm';
import { check, date, index, jsonb, text, unique, uuid } from 'drizzle-orm/pg-core';
import { at, bytea, dataTable, id64, refersTo } from './columns.ts';

export const prefills = dataTable(
  'prefills',
  ['prefill_id'],
  {
    prefill_id: uuid().notNull(),
    outcome: text({ enum: ['started', 'denied', 'expired', 'failed', 'prefilled', 'redeemed', 'lapsed', 'erased'] })
      .notNull()
      .default('started'),
    reason: text(),
    form_url: text().notNull(),
    return_url: text().notNull(),
    position_title: text(),
    position_uri: text(),
    country_code: text(),
    postal_code: text(),
    profile: jsonb(),
    profile_text: text(),
    notes: jsonb(),
    first_name: text(),
    last_name: text(),
    email: text(),
    phone: text(),
    person_key: text(),
    person_keys: text().array(),
    resume_sha256: text(),
    resume_size_bytes: id64(),
    resume_content_type: text(),
    resume_file_name: text(),
    resume_reason: text(),
    handle_hash: bytea(),
    created_at: at().notNull().defaultNow(),
    authorized_at: at(),
    prefilled_at: at(),
    expires_at: at(),
    // Nothing reads or writes it any more: a later release drops it.
    resume_put_until: at(),
    resume_stored_at: at(),
    redeemed_at: at(),
    ended_at: at(),
  },
  (t) => [
    unique('prefills_handle').on(t.advertiser_id, t.handle_hash),
    index('prefills_created').on(t.advertiser_id, t.created_at),
    index('prefills_person').on(t.advertiser_id, t.person_key),
    // Partial indexes for maintenance: it looks for a small part of a table that keeps growing.
    index('prefills_open').on(t.created_at).where(sql`${t.outcome} IN ('started', 'prefilled')`),
    // Prefills that ended without a profile. Anyone can start one, so maintenance counts them in prefill_days and deletes them.
    index('prefills_ended').on(t.ended_at).where(sql`${t.outcome} IN ('denied', 'expired', 'failed')`),
    index('prefills_blob').on(t.advertiser_id, t.resume_sha256).where(sql`${t.resume_sha256} IS NOT NULL`),
    check('prefills_kept', sql`${t.outcome} IN ('prefilled', 'redeemed') = (${t.profile} IS NOT NULL)`),
    check(
      'prefills_resume',
      sql`${t.resume_stored_at} IS NULL OR ${t.resume_sha256} IS NOT NULL OR ${t.resume_reason} IS NOT NULL OR ${t.outcome} IN ('lapsed', 'erased')`,
    ),
  ],
);

export const prefillDays = dataTable('prefill_days', ['day'], {
  day: date({ mode: 'date' }).notNull(),
  started: id64().notNull().default(sql`0`),
  authorized: id64().notNull().default(sql`0`),
  denied: id64().notNull().default(sql`0`),
  failed: id64().notNull().default(sql`0`),
  expired: id64().notNull().default(sql`0`),
});

export const oauthStates = dataTable(
  'oauth_states',
  ['state_hash'],
  {
    state_hash: bytea().notNull(),
    binding_hash: bytea().notNull(),
    prefill_id: uuid().notNull(),
    created_at: at().notNull().defaultNow(),
    expires_at: at().notNull(),
    used_at: at(),
  },
  (t) => [refersTo(t, prefills).onDelete('cascade'), index('oauth_states_expires').on(t.expires_at)],
);
