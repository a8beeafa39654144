-- What analysts ask every day is counted by day. Existing days are stale until the worker has counted them.
CREATE TABLE "intake"."delay_days" (
	"advertiser_id" bigint NOT NULL,
	"day" date NOT NULL,
	"applications" bigint NOT NULL,
	"median_seconds" numeric NOT NULL,
	"p95_seconds" numeric NOT NULL,
	"max_seconds" numeric NOT NULL,
	"ready" bigint NOT NULL,
	"median_seconds_to_ready" numeric,
	CONSTRAINT "delay_days_pkey" PRIMARY KEY("advertiser_id","day")
);
--> statement-breakpoint
CREATE TABLE "intake"."job_days" (
	"advertiser_id" bigint NOT NULL,
	"row_id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "intake"."job_days_row_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"day" date NOT NULL,
	"job_reference" text,
	"applications" bigint NOT NULL,
	"people" bigint NOT NULL,
	"screens" bigint NOT NULL,
	"screens_passed" bigint NOT NULL,
	"screens_failed" bigint NOT NULL,
	"first_at" timestamp with time zone NOT NULL,
	"last_at" timestamp with time zone NOT NULL,
	CONSTRAINT "job_days_pkey" PRIMARY KEY("advertiser_id","row_id")
);
--> statement-breakpoint
CREATE TABLE "intake"."stale_days" (
	"advertiser_id" bigint NOT NULL,
	"mark_id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "intake"."stale_days_mark_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"day" date NOT NULL,
	CONSTRAINT "stale_days_pkey" PRIMARY KEY("advertiser_id","mark_id")
);
--> statement-breakpoint
CREATE INDEX "job_days_day" ON "intake"."job_days" USING btree ("advertiser_id","day");--> statement-breakpoint
CREATE INDEX applications_no_day ON intake.applications (advertiser_id) WHERE submitted_at IS NULL;
--> statement-breakpoint
-- What the rows of a day count for, once. The view of a stale day, the function that counts it again and the view that counts everything
-- are made from it.
DO $make$
DECLARE
  of_day text := 'a.advertiser_id = %1$s.advertiser_id AND intake.local_time(a.submitted_at, a.source_offset)::date = %1$s.day';
  jobs text := $$
    SELECT %1$s a.job_reference,
      count(*) FILTER (WHERE coalesce(s.screen_no, 1) = 1) AS applications,
      count(DISTINCT a.person_key) AS people,
      count(s.screen_no) AS screens,
      count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed,
      count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed,
      min(a.submitted_at) AS first_at,
      max(a.submitted_at) AS last_at
    FROM intake.applications a
    LEFT JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id
    WHERE a.erased_at IS NULL AND %2$s
    GROUP BY %1$s a.job_reference$$;
  delays text := $$
    SELECT count(*) AS applications,
      round((percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.first_seen_at - a.submitted_at)))::numeric, 1) AS median_seconds,
      round((percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM a.first_seen_at - a.submitted_at)))::numeric, 1) AS p95_seconds,
      round(max(extract(epoch FROM a.first_seen_at - a.submitted_at)), 1) AS max_seconds,
      count(a.ready_at) AS ready,
      round((percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.ready_at - a.submitted_at)))::numeric, 1) AS median_seconds_to_ready
    FROM intake.applications a
    JOIN intake.advertisers v ON v.advertiser_id = a.advertiser_id AND a.submitted_at >= v.created_at
    WHERE a.erased_at IS NULL AND $$ || of_day || $$
    HAVING count(*) > 0$$;
  fresh text := 'NOT EXISTS (SELECT 1 FROM intake.stale_days s WHERE s.advertiser_id = d.advertiser_id AND s.day = d.day)';
  stale text := '(SELECT DISTINCT advertiser_id, day FROM intake.stale_days) AS m';
BEGIN
  EXECUTE format($$
    CREATE VIEW intake.job_days_now AS
    SELECT d.advertiser_id, d.day, d.job_reference, d.applications, d.people, d.screens, d.screens_passed, d.screens_failed, d.first_at, d.last_at
    FROM intake.job_days d WHERE %1$s
    UNION ALL SELECT m.advertiser_id, m.day, c.* FROM %2$s CROSS JOIN LATERAL (%3$s) AS c
    UNION ALL %4$s$$,
    fresh, stale, format(jobs, '', format(of_day, 'm')), format(jobs, 'a.advertiser_id, a.submitted_at::date,', 'a.submitted_at IS NULL'));
  EXECUTE format($$
    CREATE VIEW intake.delay_days_now AS
    SELECT d.advertiser_id, d.day, d.applications, d.median_seconds, d.p95_seconds, d.max_seconds, d.ready, d.median_seconds_to_ready
    FROM intake.delay_days d WHERE %1$s
    UNION ALL SELECT m.advertiser_id, m.day, c.* FROM %2$s CROSS JOIN LATERAL (%3$s) AS c$$,
    fresh, stale, format(delays, 'm'));
  -- A transaction that commits between the statements has left a mark that the first one does not see, so the day stays stale.
  EXECUTE format($$
    CREATE FUNCTION intake.count_stale_days(most int) RETURNS int LANGUAGE plpgsql AS $body$
    DECLARE
      one record;
      counted int := 0;
    BEGIN
      FOR one IN SELECT DISTINCT advertiser_id, day FROM intake.stale_days ORDER BY 1, 2 LIMIT most LOOP
        DELETE FROM intake.stale_days s WHERE s.advertiser_id = one.advertiser_id AND s.day = one.day;
        DELETE FROM intake.job_days d WHERE d.advertiser_id = one.advertiser_id AND d.day = one.day;
        DELETE FROM intake.delay_days d WHERE d.advertiser_id = one.advertiser_id AND d.day = one.day;
        INSERT INTO intake.job_days (advertiser_id, day, job_reference, applications, people, screens, screens_passed, screens_failed, first_at, last_at)
        SELECT one.advertiser_id, one.day, c.* FROM (%1$s) AS c;
        INSERT INTO intake.delay_days (advertiser_id, day, applications, median_seconds, p95_seconds, max_seconds, ready, median_seconds_to_ready)
        SELECT one.advertiser_id, one.day, c.* FROM (%2$s) AS c;
        counted := counted + 1;
      END LOOP;
      RETURN counted;
    END $body$;$$,
    format(jobs, '', format(of_day, 'one')), format(delays, 'one'));
END $make$;
--> statement-breakpoint
-- Marks the days of the rows that a statement adds, removes or changes in what is counted.
DO $make$
DECLARE
  marked record;
  change record;
BEGIN
  FOR marked IN SELECT * FROM (VALUES
    ('applications', $$SELECT r.advertiser_id, r.application_id, intake.local_time(r.submitted_at, r.source_offset)::date AS day, r.submitted_at,
      r.job_reference, r.person_key, r.erased_at IS NULL, r.first_seen_at, r.ready_at FROM %s AS r$$),
    ('screens', $$SELECT r.advertiser_id, r.application_id, intake.local_time(a.submitted_at, a.source_offset)::date AS day, r.screen_no, r.outcome
      FROM %s AS r JOIN intake.applications a ON a.advertiser_id = r.advertiser_id AND a.application_id = r.application_id$$)) AS v (name, facts)
  LOOP
    FOR change IN SELECT * FROM (VALUES
      ('insert', 'NEW TABLE AS added', format(marked.facts, 'added')),
      ('delete', 'OLD TABLE AS removed', format(marked.facts, 'removed')),
      ('update', 'OLD TABLE AS removed NEW TABLE AS added', format('(%1$s EXCEPT %2$s) UNION ALL (%2$s EXCEPT %1$s)',
        format(marked.facts, 'added'), format(marked.facts, 'removed')))) AS c (name, tables, rows)
    LOOP
      EXECUTE format($$
        CREATE FUNCTION intake.%1$I() RETURNS trigger LANGUAGE plpgsql AS $body$
        BEGIN
          INSERT INTO intake.stale_days (advertiser_id, day)
          SELECT DISTINCT advertiser_id, day FROM (%2$s) AS changed WHERE day IS NOT NULL;
          RETURN NULL;
        END $body$;
        CREATE TRIGGER mark_days_%3$s AFTER %3$s ON intake.%4$I REFERENCING %5$s FOR EACH STATEMENT EXECUTE FUNCTION intake.%1$I()$$,
        'mark_days_' || marked.name || '_' || change.name, change.rows, change.name, marked.name, change.tables);
    END LOOP;
  END LOOP;
END $make$;
--> statement-breakpoint
INSERT INTO intake.stale_days (advertiser_id, day)
SELECT DISTINCT advertiser_id, intake.local_time(submitted_at, source_offset)::date FROM intake.applications WHERE submitted_at IS NOT NULL;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.applications_daily AS
SELECT c.advertiser_id, c.day, c.job_reference, c.applications, c.people, c.screens, c.screens_passed, c.screens_failed, v.name AS advertiser
FROM intake.job_days_now c
LEFT JOIN intake.advertisers v ON v.advertiser_id = c.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.ingest_delay_daily AS
SELECT c.advertiser_id, c.day, c.applications, c.median_seconds, c.p95_seconds, c.max_seconds, c.ready, c.median_seconds_to_ready, v.name AS advertiser
FROM intake.delay_days_now c
LEFT JOIN intake.advertisers v ON v.advertiser_id = c.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.jobs AS
WITH r AS (
  SELECT v.advertiser_id, v.name, coalesce(greatest(c.as_of, k.as_of), now()) AS as_of
  FROM intake.advertisers v
  LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
  LEFT JOIN (SELECT advertiser_id, max(as_of) AS as_of FROM intake.coverage GROUP BY advertiser_id) AS k
    ON k.advertiser_id = v.advertiser_id
)
SELECT j.advertiser_id, j.job_reference, j.applications,
  j.first_application_at, j.last_application_at,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.first_application_at AND a.job_reference IS NOT DISTINCT FROM j.job_reference LIMIT 1) AS first_application_local,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.last_application_at AND a.job_reference IS NOT DISTINCT FROM j.job_reference LIMIT 1) AS last_application_local,
  coalesce(l.last_7_days, 0) AS applications_last_7_days, coalesce(l.days_before, 0) AS applications_28_days_before,
  j.screens, j.screens_passed, j.screens_failed,
  round(j.screens_passed::numeric / nullif(j.screens_passed + j.screens_failed, 0), 4) AS pass_rate,
  coalesce(l.last_7_days, 0) = 0 AND coalesce(l.days_before, 0) >= 4 AS dried_up, r.as_of, r.name AS advertiser
FROM (
  SELECT d.advertiser_id, d.job_reference, sum(d.applications)::bigint AS applications,
    min(d.first_at) AS first_application_at, max(d.last_at) AS last_application_at,
    sum(d.screens) FILTER (WHERE d.screens > 0 AND d.job_reference IS NOT NULL)::bigint AS screens,
    sum(d.screens_passed) FILTER (WHERE d.screens > 0 AND d.job_reference IS NOT NULL)::bigint AS screens_passed,
    sum(d.screens_failed) FILTER (WHERE d.screens > 0 AND d.job_reference IS NOT NULL)::bigint AS screens_failed
  FROM intake.job_days_now d
  GROUP BY d.advertiser_id, d.job_reference
) AS j
JOIN r ON r.advertiser_id = j.advertiser_id
LEFT JOIN (
  SELECT a.advertiser_id, a.job_reference, count(*) FILTER (WHERE a.submitted_at > r.as_of - interval '7 days') AS last_7_days,
    count(*) FILTER (WHERE a.submitted_at <= r.as_of - interval '7 days') AS days_before
  FROM r JOIN intake.applications a ON a.advertiser_id = r.advertiser_id AND a.submitted_at > r.as_of - interval '35 days'
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, a.job_reference
) AS l ON l.advertiser_id = j.advertiser_id AND coalesce(l.job_reference, '') = coalesce(j.job_reference, '')
  AND (l.job_reference IS NULL) = (j.job_reference IS NULL);
--> statement-breakpoint
COMMENT ON TABLE intake.job_days IS 'Applications, people and screens by day and job, as the views for analysts show them. Right unless the day is in intake.stale_days.';
COMMENT ON COLUMN intake.job_days.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.job_days.row_id IS 'Tells rows apart.';
COMMENT ON COLUMN intake.job_days.day IS 'The day of submission on the source''s clocks.';
COMMENT ON COLUMN intake.job_days.job_reference IS 'The job; null where none was entered.';
COMMENT ON COLUMN intake.job_days.applications IS 'Applications that are not erased.';
COMMENT ON COLUMN intake.job_days.people IS 'Different people among them.';
COMMENT ON COLUMN intake.job_days.screens IS 'Their screens.';
COMMENT ON COLUMN intake.job_days.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake.job_days.screens_failed IS 'Of those, failed.';
COMMENT ON COLUMN intake.job_days.first_at IS 'When the first was submitted.';
COMMENT ON COLUMN intake.job_days.last_at IS 'When the last was submitted.';
COMMENT ON TABLE intake.delay_days IS 'How long applications of a day took to be stored, as intake_analytics.ingest_delay_daily shows it. Right unless the day is in intake.stale_days.';
COMMENT ON COLUMN intake.delay_days.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.delay_days.day IS 'The day of submission on the source''s clocks.';
COMMENT ON COLUMN intake.delay_days.applications IS 'Applications submitted since the account was added.';
COMMENT ON COLUMN intake.delay_days.median_seconds IS 'Median from submission to storage.';
COMMENT ON COLUMN intake.delay_days.p95_seconds IS '95th percentile.';
COMMENT ON COLUMN intake.delay_days.max_seconds IS 'The longest.';
COMMENT ON COLUMN intake.delay_days.ready IS 'Applications whose files are all there.';
COMMENT ON COLUMN intake.delay_days.median_seconds_to_ready IS 'Median from submission until the files are there.';
COMMENT ON TABLE intake.stale_days IS 'Days on which something changed since they were counted. Triggers write a row in the transaction of the change; the views count these days from the applications.';
COMMENT ON COLUMN intake.stale_days.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.stale_days.mark_id IS 'Tells rows apart.';
COMMENT ON COLUMN intake.stale_days.day IS 'The day.';
COMMENT ON VIEW intake.job_days_now IS 'intake.job_days as it is right now: stale days, and applications without a day, are counted from the applications.';
COMMENT ON VIEW intake.delay_days_now IS 'intake.delay_days as it is right now: stale days are counted from the applications.';
COMMENT ON COLUMN intake.job_days_now.advertiser_id IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.day IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.job_reference IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.applications IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.people IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.screens IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.screens_passed IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.screens_failed IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.first_at IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_days_now.last_at IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.delay_days_now.advertiser_id IS 'As in intake.delay_days.';
COMMENT ON COLUMN intake.delay_days_now.day IS 'As in intake.delay_days.';
COMMENT ON COLUMN intake.delay_days_now.applications IS 'As in intake.delay_days.';
COMMENT ON COLUMN intake.delay_days_now.median_seconds IS 'As in intake.delay_days.';
COMMENT ON COLUMN intake.delay_days_now.p95_seconds IS 'As in intake.delay_days.';
COMMENT ON COLUMN intake.delay_days_now.max_seconds IS 'As in intake.delay_days.';
COMMENT ON COLUMN intake.delay_days_now.ready IS 'As in intake.delay_days.';
COMMENT ON COLUMN intake.delay_days_now.median_seconds_to_ready IS 'As in intake.delay_days.';