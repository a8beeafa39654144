-- ANALYZE keeps values of a column for the planner, whole objects of the source among them, and an erasure does not reach those. No plan
-- needs them of columns that say who somebody is or what they wrote: none are gathered.
DO $$
DECLARE place record;
BEGIN
  FOR place IN SELECT * FROM (VALUES
    ('applications', '{email,first_name,last_name,phone,job_seeker_id,raw,raw_text}'::text[]),
    ('primary_job_seeking_info', '{job_title,company_name}'),
    ('attachments', '{href,content_type,file_name}'),
    ('attachment_versions', '{content_type,file_name}'),
    ('screen_answers', '{text}'),
    ('quarantine', '{raw,raw_text}'),
    ('prefills', '{form_url,return_url,position_title,position_uri,postal_code,profile,profile_text,first_name,last_name,email,phone,resume_file_name}')
  ) AS p (tab, cols), unnest(p.cols) AS c (col) LOOP
    EXECUTE format('ALTER TABLE intake.%I ALTER COLUMN %I SET STATISTICS 0', place.tab, place.col);
    -- What was gathered before is cleared where the server can (Postgres 18).
    IF to_regprocedure('pg_catalog.pg_clear_attribute_stats(text, text, text, boolean)') IS NOT NULL THEN
      EXECUTE format('SELECT pg_catalog.pg_clear_attribute_stats(''intake'', %L, %L, false)', place.tab, place.col);
    END IF;
  END LOOP;
END $$;
--> statement-breakpoint
-- A declared type may carry the name of the file as a parameter (application/pdf; name="..."): analysts see the type alone.
CREATE OR REPLACE VIEW intake_analytics.attachments AS
SELECT f.advertiser_id, f.application_id, f.kind, f.version, f.state, f.reason, f.size_bytes, f.has_virus,
  f.uploaded_at, intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local,
  f.sha256, btrim(split_part(f.content_type, ';', 1)) AS content_type, f.detected_type, f.stored_at, f.gone_at,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  b.key AS blob_key, b.size_bytes AS stored_bytes, b.verified_at
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
LEFT JOIN intake.blobs b ON b.advertiser_id = f.advertiser_id AND b.sha256 = f.sha256 AND b.state = 'stored' AND f.state = 'stored'
WHERE a.erased_at IS NULL;
COMMENT ON COLUMN intake_analytics.attachments.content_type IS 'Type that the source declared, without its parameters.';
--> statement-breakpoint
-- Every time of the source also as its own clocks showed it, here too. New columns come last.
CREATE OR REPLACE VIEW intake_analytics.attachment_problems AS
SELECT f.advertiser_id, f.application_id, f.kind, f.state AS problem, f.reason, 0 AS attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  CASE WHEN f.state <> 'infected' THEN format('intake retry --application %s --kind %s', f.application_id, f.kind) END AS next,
  intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
WHERE a.erased_at IS NULL AND f.state IN ('infected', 'missing', 'rejected', 'given_up')
UNION ALL
SELECT d.advertiser_id, d.application_id, d.kind, 'waiting', d.trouble, d.attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset),
  format('intake retry --application %s --kind %s', d.application_id, d.kind),
  intake.local_time(f.uploaded_at, a.source_offset)
FROM intake.downloads d
JOIN intake.attachments f ON f.advertiser_id = d.advertiser_id AND f.application_id = d.application_id AND f.kind = d.kind
JOIN intake.applications a ON a.advertiser_id = d.advertiser_id AND a.application_id = d.application_id
WHERE a.erased_at IS NULL AND d.attempts > 0;
COMMENT ON COLUMN intake_analytics.attachment_problems.uploaded_local IS 'When the file was attached, on the source''s clocks.';
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.answer_distribution AS
SELECT d.advertiser_id, d.job_reference, d.screen_id, d.question_id, d.question_type, d.question_text,
  dense_rank() OVER (PARTITION BY d.advertiser_id, d.job_reference, d.screen_id, coalesce(d.question_id, d.question_text)
    ORDER BY d.asked_since, d.question_text) AS wording,
  d.answer_text, d.offered, d.chosen, round(d.chosen::numeric / d.offered, 4) AS share,
  round(d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS pass_rate_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0), 4) AS pass_rate_not_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0) - d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS knock_out_power,
  d.first_offered_at, d.last_offered_at, d.first_offered_local, d.last_offered_local
FROM (
  SELECT a.advertiser_id, a.job_reference, s.screen_id, q.question_id, q.type AS question_type, q.text AS question_text,
    w.text AS answer_text, count(*) AS offered, count(*) FILTER (WHERE w.selected) AS chosen,
    count(*) FILTER (WHERE w.selected AND s.outcome = 'pass') AS chosen_passed,
    count(*) FILTER (WHERE w.selected AND s.outcome <> 'unknown') AS chosen_judged,
    count(*) FILTER (WHERE NOT w.selected AND s.outcome = 'pass') AS other_passed,
    count(*) FILTER (WHERE NOT w.selected AND s.outcome <> 'unknown') AS other_judged,
    min(a.submitted_at) AS first_offered_at, max(a.submitted_at) AS last_offered_at,
    min(intake.local_time(a.submitted_at, a.source_offset)) AS first_offered_local,
    max(intake.local_time(a.submitted_at, a.source_offset)) AS last_offered_local,
    min(min(a.submitted_at)) OVER (PARTITION BY a.advertiser_id, a.job_reference, s.screen_id, q.question_id, q.text) AS asked_since
  FROM intake.applications a
  JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id
  JOIN intake.screen_questions q ON q.advertiser_id = s.advertiser_id AND q.application_id = s.application_id
    AND q.screen_no = s.screen_no
  JOIN intake.screen_answers w ON w.advertiser_id = q.advertiser_id AND w.application_id = q.application_id
    AND w.screen_no = q.screen_no AND w.question_no = q.question_no
  WHERE a.erased_at IS NULL AND q.type IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False')
  GROUP BY a.advertiser_id, a.job_reference, s.screen_id, q.question_id, q.type, q.text, w.text
) AS d;
COMMENT ON COLUMN intake_analytics.answer_distribution.first_offered_local IS 'first_offered_at on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.answer_distribution.last_offered_local IS 'last_offered_at on the source''s clocks.';
--> statement-breakpoint
-- The clock of a job's first and last application is that job's own: another job's of the same moment may have another offset.
CREATE OR REPLACE VIEW intake_analytics.jobs AS
SELECT j.advertiser_id, j.job_reference, j.applications,
  j.first_application_at, j.last_application_at,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.first_application_at AND a.job_reference IS NOT DISTINCT FROM j.job_reference LIMIT 1) AS first_application_local,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.last_application_at AND a.job_reference IS NOT DISTINCT FROM j.job_reference LIMIT 1) AS last_application_local,
  j.applications_last_7_days, j.applications_28_days_before,
  s.screens, s.screens_passed, s.screens_failed,
  round(s.screens_passed::numeric / nullif(s.screens_passed + s.screens_failed, 0), 4) AS pass_rate,
  j.applications_last_7_days = 0 AND j.applications_28_days_before >= 4 AS dried_up, j.as_of
FROM (
  SELECT a.advertiser_id, a.job_reference, r.as_of, count(*) AS applications,
    min(a.submitted_at) AS first_application_at, max(a.submitted_at) AS last_application_at,
    count(*) FILTER (WHERE a.submitted_at > r.as_of - interval '7 days') AS applications_last_7_days,
    count(*) FILTER (WHERE a.submitted_at > r.as_of - interval '35 days'
      AND a.submitted_at <= r.as_of - interval '7 days') AS applications_28_days_before
  FROM intake.applications a
  JOIN (
    SELECT v.advertiser_id, coalesce(greatest(c.as_of, k.as_of), now()) AS as_of
    FROM intake.advertisers v
    LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
    LEFT JOIN (SELECT advertiser_id, max(as_of) AS as_of FROM intake.coverage GROUP BY advertiser_id) AS k
      ON k.advertiser_id = v.advertiser_id
  ) AS r ON r.advertiser_id = a.advertiser_id
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, a.job_reference, r.as_of
) AS j
LEFT JOIN (
  SELECT a.advertiser_id, a.job_reference, count(*) AS screens,
    count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed, count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
  FROM intake.screens s
  JOIN intake.applications a ON a.advertiser_id = s.advertiser_id AND a.application_id = s.application_id
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, a.job_reference
) AS s ON s.advertiser_id = j.advertiser_id AND s.job_reference = j.job_reference;
