-- expand
CREATE TABLE "intake"."job_months" (
	"advertiser_id" bigint NOT NULL,
	"row_id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "intake"."job_months_row_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"month" date NOT NULL,
	"job_reference" text,
	"applications" bigint NOT NULL,
	"screens" bigint NOT NULL,
	"screens_passed" bigint NOT NULL,
	"screens_failed" bigint NOT NULL,
	"first_at" timestamp with time zone NOT NULL,
	"last_at" timestamp with time zone NOT NULL,
	CONSTRAINT "job_months_pkey" PRIMARY KEY("advertiser_id","row_id"),
	CONSTRAINT "job_months_once" UNIQUE NULLS NOT DISTINCT("advertiser_id","month","job_reference")
);
--> statement-breakpoint
-- Sums the months of changed days again, unless another day of the month is stale: such a month is read from its days.
CREATE FUNCTION intake.sum_job_months() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  one record;
BEGIN
  FOR one IN
    SELECT advertiser_id, date_trunc('month', day)::date AS month FROM changed
    EXCEPT SELECT advertiser_id, date_trunc('month', day)::date FROM intake.stale_days
  LOOP
    DELETE FROM intake.job_months m WHERE m.advertiser_id = one.advertiser_id AND m.month = one.month;
    INSERT INTO intake.job_months (advertiser_id, month, job_reference, applications, screens, screens_passed, screens_failed, first_at, last_at)
    SELECT one.advertiser_id, one.month, d.job_reference, sum(d.applications), sum(d.screens), sum(d.screens_passed), sum(d.screens_failed),
      min(d.first_at), max(d.last_at)
    FROM intake.job_days d
    WHERE d.advertiser_id = one.advertiser_id AND d.day >= one.month AND d.day < one.month + interval '1 month'
    GROUP BY d.job_reference;
  END LOOP;
  RETURN NULL;
END $body$;
--> statement-breakpoint
CREATE TRIGGER sum_months_insert AFTER INSERT ON intake.job_days REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION intake.sum_job_months();
--> statement-breakpoint
CREATE TRIGGER sum_months_delete AFTER DELETE ON intake.job_days REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION intake.sum_job_months();
--> statement-breakpoint
INSERT INTO intake.job_months (advertiser_id, month, job_reference, applications, screens, screens_passed, screens_failed, first_at, last_at)
SELECT advertiser_id, date_trunc('month', day), job_reference, sum(applications), sum(screens), sum(screens_passed), sum(screens_failed),
  min(first_at), max(last_at)
FROM intake.job_days
GROUP BY 1, 2, 3;
--> statement-breakpoint
-- The screens of an application are looked up: a join would read the screens of all applications for each day.
DO $make$
DECLARE
  joined text := 'LEFT JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id';
  looked_up text := $$LEFT JOIN LATERAL (
      SELECT * FROM intake.screens s WHERE s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id OFFSET 0) AS s ON true$$;
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
    $$ || looked_up || $$
    WHERE a.erased_at IS NULL AND %2$s
    GROUP BY %1$s a.job_reference$$;
BEGIN
  EXECUTE replace(pg_get_functiondef('intake.count_stale_days(int)'::regprocedure), joined, looked_up);
  EXECUTE format($$
    CREATE OR REPLACE VIEW intake.job_days_now AS
    SELECT d.advertiser_id, d.day, d.job_reference, d.applications, d.people, d.screens, d.screens_passed, d.screens_failed, d.first_at, d.last_at
    FROM intake.job_days d
    WHERE NOT EXISTS (SELECT 1 FROM intake.stale_days s WHERE s.advertiser_id = d.advertiser_id AND s.day = d.day)
    UNION ALL SELECT m.advertiser_id, m.day, c.* FROM (SELECT DISTINCT advertiser_id, day FROM intake.stale_days) AS m CROSS JOIN LATERAL (%1$s) AS c
    UNION ALL %2$s$$,
    format(jobs, '', 'a.advertiser_id = m.advertiser_id AND intake.local_time(a.submitted_at, a.source_offset)::date = m.day'),
    format(jobs, 'a.advertiser_id, a.submitted_at::date,', 'a.submitted_at IS NULL'));
END $make$;
--> statement-breakpoint
CREATE VIEW intake.job_months_now AS
WITH stale AS (SELECT DISTINCT advertiser_id, date_trunc('month', day)::date AS month FROM intake.stale_days)
SELECT m.advertiser_id, m.month, m.job_reference, m.applications, m.screens, m.screens_passed, m.screens_failed, m.first_at, m.last_at
FROM intake.job_months m
WHERE NOT EXISTS (SELECT 1 FROM stale s WHERE s.advertiser_id = m.advertiser_id AND s.month = m.month)
UNION ALL
SELECT s.advertiser_id, s.month, c.* FROM stale s CROSS JOIN LATERAL (
  SELECT d.job_reference, sum(d.applications)::bigint, sum(d.screens)::bigint, sum(d.screens_passed)::bigint, sum(d.screens_failed)::bigint,
    min(d.first_at), max(d.last_at)
  FROM intake.job_days_now d
  WHERE d.advertiser_id = s.advertiser_id AND d.day >= s.month AND d.day < s.month + interval '1 month'
  GROUP BY d.job_reference
) AS c
UNION ALL
SELECT d.advertiser_id, d.day, d.job_reference, d.applications, d.screens, d.screens_passed, d.screens_failed, d.first_at, d.last_at
FROM intake.job_days_now d
WHERE d.day IS NULL;
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
  FROM intake.job_months_now d
  GROUP BY d.advertiser_id, d.job_reference
) AS j
JOIN r ON r.advertiser_id = j.advertiser_id
LEFT JOIN (
  SELECT r.advertiser_id, c.* FROM r CROSS JOIN LATERAL (
    SELECT a.job_reference, count(*) FILTER (WHERE a.submitted_at > r.as_of - interval '7 days') AS last_7_days,
      count(*) FILTER (WHERE a.submitted_at <= r.as_of - interval '7 days') AS days_before
    FROM intake.applications a
    WHERE a.advertiser_id = r.advertiser_id AND a.submitted_at > r.as_of - interval '35 days' AND a.erased_at IS NULL
    GROUP BY a.job_reference
  ) AS c
) AS l ON l.advertiser_id = j.advertiser_id AND coalesce(l.job_reference, '') = coalesce(j.job_reference, '')
  AND (l.job_reference IS NULL) = (j.job_reference IS NULL);
--> statement-breakpoint
-- Each problem looks its own application up: a join would read all applications.
CREATE OR REPLACE VIEW intake_analytics.attachment_problems AS
SELECT f.advertiser_id, f.application_id, f.kind, f.state AS problem, f.reason, 0 AS attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  CASE WHEN f.reason = 'its virus flag (HasVirus) cannot be read' THEN 'intake sync --recheck'
    WHEN f.state <> 'infected' AND f.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', f.application_id, f.kind) END AS next,
  intake.local_time(f.uploaded_at, coalesce(f.uploaded_offset, a.source_offset)) AS uploaded_local, v.name AS advertiser
FROM intake.attachments f
CROSS JOIN LATERAL (
  SELECT * FROM intake.applications a WHERE a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id LIMIT 1
) AS a
LEFT JOIN intake.advertisers v ON v.advertiser_id = f.advertiser_id
WHERE a.erased_at IS NULL AND f.state IN ('infected', 'missing', 'rejected', 'given_up')
UNION ALL
SELECT d.advertiser_id, d.application_id, d.kind, 'waiting', d.trouble, d.attempts - (d.lease_token IS NOT NULL)::int, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset),
  CASE WHEN d.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', d.application_id, d.kind) END,
  intake.local_time(f.uploaded_at, coalesce(f.uploaded_offset, a.source_offset)), v.name
FROM intake.downloads d
JOIN intake.attachments f ON f.advertiser_id = d.advertiser_id AND f.application_id = d.application_id AND f.kind = d.kind
CROSS JOIN LATERAL (
  SELECT * FROM intake.applications a WHERE a.advertiser_id = d.advertiser_id AND a.application_id = d.application_id LIMIT 1
) AS a
LEFT JOIN intake.advertisers v ON v.advertiser_id = d.advertiser_id
WHERE a.erased_at IS NULL AND d.trouble IS NOT NULL AND f.state IN ('pending', 'stored');
--> statement-breakpoint
COMMENT ON TABLE intake.job_months IS 'The days of a month in intake.job_days, summed by job. Right unless a day of the month is in intake.stale_days.';
COMMENT ON COLUMN intake.job_months.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.job_months.row_id IS 'Tells rows apart.';
COMMENT ON COLUMN intake.job_months.month IS 'The first day of the month.';
COMMENT ON COLUMN intake.job_months.job_reference IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_months.applications IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_months.screens IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_months.screens_passed IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_months.screens_failed IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_months.first_at IS 'As in intake.job_days.';
COMMENT ON COLUMN intake.job_months.last_at IS 'As in intake.job_days.';
COMMENT ON VIEW intake.job_months_now IS 'intake.job_months as it is right now: months with a stale day, and applications without a day, are read from intake.job_days_now.';
COMMENT ON COLUMN intake.job_months_now.advertiser_id IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.month IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.job_reference IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.applications IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.screens IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.screens_passed IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.screens_failed IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.first_at IS 'As in intake.job_months.';
COMMENT ON COLUMN intake.job_months_now.last_at IS 'As in intake.job_months.';
