CREATE TABLE "intake"."prefill_days" (
	"advertiser_id" bigint NOT NULL,
	"day" date NOT NULL,
	"started" bigint DEFAULT 0 NOT NULL,
	"authorized" bigint DEFAULT 0 NOT NULL,
	"denied" bigint DEFAULT 0 NOT NULL,
	"failed" bigint DEFAULT 0 NOT NULL,
	"expired" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "prefill_days_pkey" PRIMARY KEY("advertiser_id","day")
);
--> statement-breakpoint
ALTER TABLE "intake"."prefills" ADD COLUMN "person_keys" text[];--> statement-breakpoint
ALTER TABLE "intake"."prefills" ADD COLUMN "expires_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "intake"."prefills" ADD COLUMN "resume_put_until" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "prefills_ended" ON "intake"."prefills" USING btree ("ended_at") WHERE "intake"."prefills"."outcome" IN ('denied', 'expired', 'failed');
--> statement-breakpoint
-- Until now only the e-mail address stood for a candidate, and only the worker's own setting said when a profile leaves.
UPDATE intake.prefills SET person_keys = ARRAY[person_key] WHERE person_key IS NOT NULL;--> statement-breakpoint
UPDATE intake.prefills SET expires_at = prefilled_at + interval '1 day' WHERE outcome = 'prefilled';--> statement-breakpoint
-- Rows that came to nothing live on as numbers: anybody can make them.
CREATE OR REPLACE VIEW intake_analytics.prefill_funnel_daily AS
SELECT advertiser_id, day, sum(started)::bigint AS started, sum(authorized)::bigint AS authorized, sum(denied)::bigint AS denied,
  sum(prefilled)::bigint AS prefilled, sum(resume_stored)::bigint AS resume_stored, sum(redeemed)::bigint AS redeemed,
  sum(failed)::bigint AS failed, sum(expired)::bigint AS expired, sum(lapsed)::bigint AS lapsed
FROM (
  SELECT advertiser_id, (created_at AT TIME ZONE interval '10 hours')::date AS day,
    count(*) AS started,
    count(authorized_at) AS authorized,
    count(*) FILTER (WHERE outcome = 'denied') AS denied,
    count(prefilled_at) AS prefilled,
    count(resume_stored_at) AS resume_stored,
    count(redeemed_at) AS redeemed,
    count(*) FILTER (WHERE outcome = 'failed') AS failed,
    count(*) FILTER (WHERE outcome = 'expired') AS expired,
    count(*) FILTER (WHERE outcome = 'lapsed' AND redeemed_at IS NULL) AS lapsed
  FROM intake.prefills GROUP BY 1, 2
  UNION ALL
  SELECT advertiser_id, day, started, authorized, denied, 0, 0, 0, failed, expired, 0 FROM intake.prefill_days
) AS counted
GROUP BY advertiser_id, day;
--> statement-breakpoint
COMMENT ON TABLE intake.prefills IS 'What candidates let a careers site fill in, one row per click on its button. The person leaves the row when nobody redeems it in time, or when erased; a row that came to nothing is deleted after an hour and counted in intake.prefill_days.';
COMMENT ON COLUMN intake.prefills.person_keys IS 'Stand for the person: one keyed hash for each address and each account id that the profile or its session named. Empty where it named none.';
COMMENT ON COLUMN intake.prefills.expires_at IS 'When a profile that nobody has redeemed leaves.';
COMMENT ON COLUMN intake.prefills.resume_put_until IS 'The bytes of the resume may be on their way to the blob store until then; null once that is over.';
COMMENT ON COLUMN intake.prefills.resume_sha256 IS 'Fingerprint of the resume, in hex; its bytes lie in the blob store under prefills/advertiser_id/prefill_id once resume_stored_at is set, and may lie there before.';
COMMENT ON COLUMN intake.advertisers.retention_due IS 'How many records RETENTION would erase at once, where the brake holds them back until a person says so; null otherwise.';
COMMENT ON TABLE intake.prefill_days IS 'Clicks on the button that came to nothing, counted by day. Their rows are deleted.';
COMMENT ON COLUMN intake.prefill_days.advertiser_id IS 'The advertiser whose form was to be filled.';
COMMENT ON COLUMN intake.prefill_days.day IS 'The day, at +10:00, on which the button was clicked.';
COMMENT ON COLUMN intake.prefill_days.started IS 'Clicks on the button.';
COMMENT ON COLUMN intake.prefill_days.authorized IS 'Candidates who came back with a code.';
COMMENT ON COLUMN intake.prefill_days.denied IS 'Candidates who said no.';
COMMENT ON COLUMN intake.prefill_days.failed IS 'Prefills that failed, at the source or with us.';
COMMENT ON COLUMN intake.prefill_days.expired IS 'Prefills that came back too late, or never.';
--> statement-breakpoint
-- Columns that hold what a person is known by, in clear or as a hash, get no statistics: neither autovacuum nor a manual ANALYZE keeps their values.
DO $$
DECLARE
  place record;
  restore text[] := '{}';
  step text;
BEGIN
  FOR place IN SELECT * FROM (VALUES
    ('applications', '{person_key,content_hash}'::text[]),
    ('quarantine', '{fingerprint}'),
    ('prefills', '{person_key,person_keys,handle_hash,resume_sha256,resume_content_type}'),
    ('oauth_states', '{state_hash,binding_hash}'),
    ('erasure_jobs', '{sought,application_ids,hashes}')
  ) AS p (tab, cols), unnest(p.cols) AS c (col) LOOP
    EXECUTE format('ALTER TABLE intake.%I ALTER COLUMN %I SET STATISTICS 0', place.tab, place.col);
  END LOOP;

  -- What was gathered before stays until it is cleared. Postgres 18 has a function for it.
  IF to_regprocedure('pg_catalog.pg_clear_attribute_stats(text, text, text, boolean)') IS NOT NULL THEN
    FOR place IN SELECT s.tablename, s.attname FROM pg_stats s JOIN pg_attribute a
      ON a.attrelid = format('intake.%I', s.tablename)::regclass AND a.attname = s.attname
      WHERE s.schemaname = 'intake' AND a.attstattarget = 0
    LOOP
      EXECUTE format('SELECT pg_catalog.pg_clear_attribute_stats(''intake'', %L, %L, false)', place.tablename, place.attname);
    END LOOP;
    RETURN;
  END IF;

  -- Before that, giving a column the type that it has drops its statistics and rewrites no table, but no view may stand upon it meanwhile:
  -- ours are put back as they were, with their owners, options, privileges and comments.
  IF NOT EXISTS (SELECT 1 FROM pg_stats s JOIN pg_attribute a ON a.attrelid = format('intake.%I', s.tablename)::regclass AND a.attname = s.attname
    WHERE s.schemaname = 'intake' AND a.attstattarget = 0) THEN
    RETURN;
  END IF;
  FOR place IN
    WITH RECURSIVE ours AS (
      SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, c.relowner::regrole AS owner, c.reloptions, c.relacl
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ('intake', 'intake_analytics') AND c.relkind = 'v'
    ), depths AS (
      SELECT oid, 0 AS depth FROM ours
      UNION SELECT r.ev_class, u.depth + 1 FROM depths u
      JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = u.oid AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite r ON r.oid = d.objid AND r.ev_class <> u.oid
    )
    SELECT o.*, pg_get_viewdef(o.oid) AS definition FROM ours o ORDER BY (SELECT max(depth) FROM depths WHERE oid = o.oid), o.oid
  LOOP
    restore := restore || format('CREATE VIEW %s%s AS %s', place.name,
      CASE WHEN place.reloptions IS NOT NULL THEN format(' WITH (%s)', array_to_string(place.reloptions, ', ')) END, place.definition)
      || format('ALTER VIEW %s OWNER TO %s', place.name, place.owner)
      || ARRAY(SELECT format('COMMENT ON %s IS %L', CASE d.objsubid WHEN 0 THEN 'VIEW ' || place.name ELSE
           'COLUMN ' || place.name || '.' || quote_ident((SELECT attname FROM pg_attribute WHERE attrelid = place.oid AND attnum = d.objsubid)) END, d.description)
         FROM pg_description d WHERE d.objoid = place.oid AND d.classoid = 'pg_class'::regclass ORDER BY d.objsubid)
      || ARRAY(SELECT format('GRANT %s ON %s TO %s%s', a.privilege_type, place.name,
           CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
         FROM aclexplode(place.relacl) a);
  END LOOP;
  BEGIN
    EXECUTE (SELECT 'DROP VIEW ' || string_agg(format('%I.%I', n.nspname, c.relname), ', ') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname IN ('intake', 'intake_analytics') AND c.relkind = 'v');
    FOR place IN SELECT format('intake.%I', s.tablename) AS tab, s.attname, format_type(a.atttypid, a.atttypmod) AS type
      FROM pg_stats s JOIN pg_attribute a ON a.attrelid = format('intake.%I', s.tablename)::regclass AND a.attname = s.attname
      WHERE s.schemaname = 'intake' AND a.attstattarget = 0
    LOOP
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s', place.tab, place.attname, place.type);
      -- The new form of a column begins with the default again on some servers.
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', place.tab, place.attname);
    END LOOP;
    FOREACH step IN ARRAY restore LOOP EXECUTE step; END LOOP;
  EXCEPTION WHEN dependent_objects_still_exist OR feature_not_supported THEN
    RAISE WARNING 'Values of people that ANALYZE kept before this upgrade could not be cleared: % As a superuser: DELETE FROM pg_statistic s USING pg_attribute a WHERE a.attrelid = s.starelid AND a.attnum = s.staattnum AND a.attstattarget = 0;', SQLERRM;
  END;
END $$;
