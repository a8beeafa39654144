-- What analysts asked for and \d+ could not answer: accounts by name, weeks, events, and prefills beside applications.
-- The name stands at the end of each view: columns are only ever added. Where rows are counted it is joined to the counts, so that
-- counting reads what it read before; a query that does not ask for the name does not read the accounts at all.
CREATE OR REPLACE VIEW intake_analytics.applications AS
SELECT a.advertiser_id, a.application_id, a.person_key, a.job_reference,
  a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, a.source_offset,
  a.email, a.first_name, a.last_name, a.phone, a.job_seeker_id,
  i.job_title AS current_job_title, i.company_name AS current_company, i.time_in_role_months, i.is_new_to_workforce,
  (SELECT CASE WHEN bool_or(s.outcome = 'fail') THEN 'fail' WHEN bool_or(s.outcome = 'unknown') THEN 'unknown' ELSE max(s.outcome) END
   FROM intake.screens s WHERE s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id) AS screening_outcome,
  a.first_seen_at, a.changed_at, a.ready_at, a.missing_since, a.notes, v.name AS advertiser
FROM intake.applications a
LEFT JOIN intake.primary_job_seeking_info i
  ON i.advertiser_id = a.advertiser_id AND i.application_id = a.application_id AND i.gone_at IS NULL
LEFT JOIN intake.advertisers v ON v.advertiser_id = a.advertiser_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.applications_anonymous AS
SELECT a.advertiser_id, a.application_id, a.person_key, a.job_reference,
  a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, a.source_offset,
  i.time_in_role_months, i.is_new_to_workforce,
  (SELECT CASE WHEN bool_or(s.outcome = 'fail') THEN 'fail' WHEN bool_or(s.outcome = 'unknown') THEN 'unknown' ELSE max(s.outcome) END
   FROM intake.screens s WHERE s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id) AS screening_outcome,
  a.first_seen_at, a.changed_at, a.ready_at, a.missing_since, v.name AS advertiser
FROM intake.applications a
LEFT JOIN intake.primary_job_seeking_info i
  ON i.advertiser_id = a.advertiser_id AND i.application_id = a.application_id AND i.gone_at IS NULL
LEFT JOIN intake.advertisers v ON v.advertiser_id = a.advertiser_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.screening_outcomes AS
SELECT s.advertiser_id, s.application_id, s.screen_no, s.screen_id, s.name AS screen_name, s.outcome,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, v.name AS advertiser
FROM intake.screens s
JOIN intake.applications a ON a.advertiser_id = s.advertiser_id AND a.application_id = s.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = s.advertiser_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.screening_answers AS
SELECT w.advertiser_id, w.application_id, w.screen_no, w.question_no, w.answer_no,
  s.screen_id, s.name AS screen_name, s.outcome, q.question_id, q.type AS question_type, q.text AS question_text, w.answer_id,
  CASE WHEN q.type IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False') THEN w.text END AS answer_text,
  w.selected, a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, v.name AS advertiser
FROM intake.screen_answers w
JOIN intake.screen_questions q ON q.advertiser_id = w.advertiser_id AND q.application_id = w.application_id
  AND q.screen_no = w.screen_no AND q.question_no = w.question_no
JOIN intake.screens s ON s.advertiser_id = w.advertiser_id AND s.application_id = w.application_id AND s.screen_no = w.screen_no
JOIN intake.applications a ON a.advertiser_id = w.advertiser_id AND a.application_id = w.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = w.advertiser_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.screening_free_text AS
SELECT w.advertiser_id, w.application_id, w.screen_no, w.question_no, w.answer_no,
  s.screen_id, s.name AS screen_name, s.outcome, q.question_id, q.type AS question_type, q.text AS question_text, w.text AS answer_text,
  w.selected, a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, v.name AS advertiser
FROM intake.screen_answers w
JOIN intake.screen_questions q ON q.advertiser_id = w.advertiser_id AND q.application_id = w.application_id
  AND q.screen_no = w.screen_no AND q.question_no = w.question_no
JOIN intake.screens s ON s.advertiser_id = w.advertiser_id AND s.application_id = w.application_id AND s.screen_no = w.screen_no
JOIN intake.applications a ON a.advertiser_id = w.advertiser_id AND a.application_id = w.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = w.advertiser_id
WHERE a.erased_at IS NULL
  AND (q.type IS NULL OR q.type NOT IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False'));
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.attachments AS
SELECT f.advertiser_id, f.application_id, f.kind, f.version, f.state, f.reason, f.size_bytes, f.has_virus,
  f.uploaded_at, intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local,
  f.sha256, btrim(split_part(f.content_type, ';', 1)) AS content_type, f.detected_type, f.stored_at, f.gone_at,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  b.key AS blob_key, b.size_bytes AS stored_bytes, b.verified_at, v.name AS advertiser
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
LEFT JOIN intake.blobs b ON b.advertiser_id = f.advertiser_id AND b.sha256 = f.sha256 AND b.state = 'stored' AND f.state = 'stored'
LEFT JOIN intake.advertisers v ON v.advertiser_id = f.advertiser_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
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
  j.applications_last_7_days = 0 AND j.applications_28_days_before >= 4 AS dried_up, j.as_of, v.name AS advertiser
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
) AS s ON s.advertiser_id = j.advertiser_id AND s.job_reference = j.job_reference
LEFT JOIN intake.advertisers v ON v.advertiser_id = j.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.job_seekers AS
SELECT p.advertiser_id, p.person_key, p.applications, p.jobs,
  p.first_application_at, p.last_application_at, p.first_application_local, p.last_application_local,
  coalesce(s.screens, 0) AS screens, coalesce(s.screens_passed, 0) AS screens_passed, coalesce(s.screens_failed, 0) AS screens_failed, v.name AS advertiser
FROM (
  SELECT a.advertiser_id, a.person_key, count(*) AS applications, count(DISTINCT a.job_reference) AS jobs,
    min(a.submitted_at) AS first_application_at, max(a.submitted_at) AS last_application_at,
    min(intake.local_time(a.submitted_at, a.source_offset)) AS first_application_local,
    max(intake.local_time(a.submitted_at, a.source_offset)) AS last_application_local
  FROM intake.applications a
  WHERE a.person_key IS NOT NULL
  GROUP BY a.advertiser_id, a.person_key
) AS p
LEFT JOIN (
  SELECT a.advertiser_id, a.person_key, count(*) AS screens,
    count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed, count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
  FROM intake.screens s
  JOIN intake.applications a ON a.advertiser_id = s.advertiser_id AND a.application_id = s.application_id
  WHERE a.person_key IS NOT NULL
  GROUP BY a.advertiser_id, a.person_key
) AS s ON s.advertiser_id = p.advertiser_id AND s.person_key = p.person_key
LEFT JOIN intake.advertisers v ON v.advertiser_id = p.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.answer_distribution AS
SELECT d.advertiser_id, d.job_reference, d.screen_id, d.question_id, d.question_type, d.question_text,
  dense_rank() OVER (PARTITION BY d.advertiser_id, d.job_reference, d.screen_id, coalesce(d.question_id, d.question_text)
    ORDER BY d.asked_since, d.question_text) AS wording,
  d.answer_text, d.offered, d.chosen, round(d.chosen::numeric / d.offered, 4) AS share,
  round(d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS pass_rate_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0), 4) AS pass_rate_not_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0) - d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS knock_out_power,
  d.first_offered_at, d.last_offered_at, d.first_offered_local, d.last_offered_local, v.name AS advertiser
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
) AS d
LEFT JOIN intake.advertisers v ON v.advertiser_id = d.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.attachment_problems AS
SELECT f.advertiser_id, f.application_id, f.kind, f.state AS problem, f.reason, 0 AS attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  CASE WHEN f.state <> 'infected' AND f.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', f.application_id, f.kind) END AS next,
  intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local, v.name AS advertiser
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = f.advertiser_id
WHERE a.erased_at IS NULL AND f.state IN ('infected', 'missing', 'rejected', 'given_up')
UNION ALL
SELECT d.advertiser_id, d.application_id, d.kind, 'waiting', d.trouble, d.attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset),
  CASE WHEN d.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', d.application_id, d.kind) END,
  intake.local_time(f.uploaded_at, a.source_offset), v.name
FROM intake.downloads d
JOIN intake.attachments f ON f.advertiser_id = d.advertiser_id AND f.application_id = d.application_id AND f.kind = d.kind
JOIN intake.applications a ON a.advertiser_id = d.advertiser_id AND a.application_id = d.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = d.advertiser_id
WHERE a.erased_at IS NULL AND d.attempts > 0;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.sweeps AS
SELECT s.advertiser_id, s.sweep_id, s.lane, s.purpose, s.axis, s.low, s.high, s.state, s.certificate, s.reason,
  s.started_at, s.last_progress_at, s.ended_at, round(extract(epoch FROM coalesce(s.ended_at, s.last_progress_at) - s.started_at), 3) AS seconds,
  s.requests, s.received, s.added, s.changed, s.bytes,
  (SELECT count(*) FROM intake.gaps g WHERE g.advertiser_id = s.advertiser_id AND g.sweep_id = s.sweep_id) AS gaps, v.name AS advertiser
FROM intake.sweeps s
LEFT JOIN intake.advertisers v ON v.advertiser_id = s.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.applications_daily AS
SELECT c.advertiser_id, c.day, c.job_reference, c.applications, c.people, c.screens, c.screens_passed, c.screens_failed, v.name AS advertiser
FROM (
  SELECT a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date AS day, a.job_reference,
    count(*) FILTER (WHERE coalesce(s.screen_no, 1) = 1) AS applications,
    count(DISTINCT a.person_key) AS people,
    count(s.screen_no) AS screens,
    count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed,
    count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
  FROM intake.applications a
  LEFT JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date, a.job_reference
) AS c
LEFT JOIN intake.advertisers v ON v.advertiser_id = c.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.data_quality AS
SELECT c.advertiser_id, c.finding, c.meaning, c.affected, c.out_of, c.share, c.example_application_id, v.name AS advertiser
FROM (
  SELECT a.advertiser_id, c.finding, c.meaning, c.affected, a.held AS out_of, round(c.affected::numeric / a.held, 4) AS share,
    c.example_application_id
  FROM (
    SELECT advertiser_id, count(*) AS held,
      count(*) FILTER (WHERE submitted_at IS NULL) AS no_time, min(application_id) FILTER (WHERE submitted_at IS NULL) AS no_time_id,
      count(*) FILTER (WHERE submitted_at > first_seen_at) AS future, min(application_id) FILTER (WHERE submitted_at > first_seen_at) AS future_id,
      count(*) FILTER (WHERE coalesce(job_reference, '') = '') AS no_job, min(application_id) FILTER (WHERE coalesce(job_reference, '') = '') AS no_job_id,
      count(*) FILTER (WHERE coalesce(email, '') = '') AS no_email, min(application_id) FILTER (WHERE coalesce(email, '') = '') AS no_email_id,
      count(*) FILTER (WHERE coalesce(phone, '') = '') AS no_phone, min(application_id) FILTER (WHERE coalesce(phone, '') = '') AS no_phone_id,
      count(*) FILTER (WHERE person_key IS NULL) AS nobody, min(application_id) FILTER (WHERE person_key IS NULL) AS nobody_id,
      count(absent_since) AS absent, min(application_id) FILTER (WHERE absent_since IS NOT NULL) AS absent_id,
      count(missing_since) AS missing, min(application_id) FILTER (WHERE missing_since IS NOT NULL) AS missing_id
    FROM intake.applications WHERE erased_at IS NULL GROUP BY advertiser_id
  ) AS a
  CROSS JOIN LATERAL (VALUES
    ('no_submission_time', 'The source gave no time that can be read.', a.no_time, a.no_time_id),
    ('submitted_in_the_future', 'Submitted later than it was first stored: a wrong clock, or times shifted by their offset.', a.future, a.future_id),
    ('no_job_reference', 'The advertiser entered no reference for the job ad.', a.no_job, a.no_job_id),
    ('no_email', 'No e-mail address.', a.no_email, a.no_email_id),
    ('no_phone', 'No phone number.', a.no_phone, a.no_phone_id),
    ('no_person', 'Neither a jobseeker id nor an e-mail address: the person cannot be told from others.', a.nobody, a.nobody_id),
    ('absent', 'The source no longer shows it; not yet confirmed.', a.absent, a.absent_id),
    ('missing', 'Confirmed to be gone at the source.', a.missing, a.missing_id)
  ) AS c (finding, meaning, affected, example_application_id)
  UNION ALL
  SELECT a.advertiser_id, 'noted', format('%s %s', n.field, n.reason), count(*), NULL, NULL, min(a.application_id)
  FROM intake.applications a, jsonb_to_recordset(a.notes) AS n (field text, reason text)
  WHERE a.notes IS NOT NULL AND a.erased_at IS NULL GROUP BY a.advertiser_id, n.field, n.reason
  UNION ALL
  SELECT s.advertiser_id, 'screen_noted', format('%s %s', n.field, n.reason), count(*), NULL, NULL, min(s.application_id)
  FROM intake.screens s, jsonb_to_recordset(s.notes) AS n (field text, reason text)
  WHERE s.notes IS NOT NULL GROUP BY s.advertiser_id, n.field, n.reason
  UNION ALL
  SELECT q.advertiser_id, 'quarantined', q.reason, count(*), NULL, NULL, NULL
  FROM intake.quarantine q WHERE q.resolved_at IS NULL GROUP BY q.advertiser_id, q.reason
) AS c
LEFT JOIN intake.advertisers v ON v.advertiser_id = c.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.prefill_funnel_daily AS
SELECT c.advertiser_id, c.day, c.started, c.authorized, c.denied, c.prefilled, c.resume_stored, c.redeemed, c.failed, c.expired, c.lapsed, v.name AS advertiser
FROM (
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
  GROUP BY advertiser_id, day
) AS c
LEFT JOIN intake.advertisers v ON v.advertiser_id = c.advertiser_id;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.ingest_delay_daily AS
SELECT c.advertiser_id, c.day, c.applications, c.median_seconds, c.p95_seconds, c.max_seconds, c.ready, c.median_seconds_to_ready, v.name AS advertiser
FROM (
  SELECT a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date AS day,
    count(*) AS applications,
    round((percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.first_seen_at - a.submitted_at)))::numeric, 1) AS median_seconds,
    round((percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM a.first_seen_at - a.submitted_at)))::numeric, 1) AS p95_seconds,
    round(max(extract(epoch FROM a.first_seen_at - a.submitted_at)), 1) AS max_seconds,
    count(a.ready_at) AS ready,
    round((percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.ready_at - a.submitted_at)))::numeric, 1) AS median_seconds_to_ready
  FROM intake.applications a
  JOIN intake.advertisers v ON v.advertiser_id = a.advertiser_id AND a.submitted_at >= v.created_at
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date
) AS c
LEFT JOIN intake.advertisers v ON v.advertiser_id = c.advertiser_id;
--> statement-breakpoint
CREATE VIEW intake_analytics.applications_weekly AS
SELECT c.advertiser_id, c.week, c.job_reference, c.applications, c.people, c.screens, c.screens_passed, c.screens_failed, v.name AS advertiser
FROM (
  SELECT a.advertiser_id, date_trunc('week', intake.local_time(a.submitted_at, a.source_offset))::date AS week, a.job_reference,
    count(*) FILTER (WHERE coalesce(s.screen_no, 1) = 1) AS applications,
    count(DISTINCT a.person_key) AS people,
    count(s.screen_no) AS screens,
    count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed,
    count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
  FROM intake.applications a
  LEFT JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, date_trunc('week', intake.local_time(a.submitted_at, a.source_offset))::date, a.job_reference
) AS c
LEFT JOIN intake.advertisers v ON v.advertiser_id = c.advertiser_id;
--> statement-breakpoint
-- That somebody was erased can be counted, so that a total that fell can be explained; whose application it was cannot be seen.
CREATE VIEW intake_analytics.events AS
SELECT e.advertiser_id, e.event_id, e.type, e.at, intake.local_time(e.at, NULL) AS at_local,
  CASE WHEN a.erased_at IS NULL THEN e.application_id END AS application_id,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, v.name AS advertiser
FROM intake.events e
JOIN intake.applications a ON a.advertiser_id = e.advertiser_id AND a.application_id = e.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = e.advertiser_id
WHERE a.erased_at IS NULL OR e.type = 'application.erased';
--> statement-breakpoint
-- A profile and an application have nothing in common but the person: the account that both name, or the address.
CREATE VIEW intake_analytics.prefill_applications AS
SELECT m.advertiser_id, m.prefill_id, m.application_id, m.matched_by, a.person_key, a.job_reference,
  p.created_at AS clicked_at, p.redeemed_at, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  round(extract(epoch FROM a.submitted_at - p.created_at)) AS seconds_after_click, v.name AS advertiser
FROM (
  SELECT advertiser_id, prefill_id, application_id, max(matched_by) AS matched_by
  FROM (
    SELECT p.advertiser_id, p.prefill_id, a.application_id, 'person_key' AS matched_by
    FROM intake.prefills p CROSS JOIN unnest(p.person_keys) AS one (person_key)
    JOIN intake.applications a ON a.advertiser_id = p.advertiser_id AND a.person_key = one.person_key
    UNION ALL
    SELECT p.advertiser_id, p.prefill_id, a.application_id, 'address'
    FROM intake.prefills p
    JOIN intake.applications a ON a.advertiser_id = p.advertiser_id AND lower(btrim(a.email)) = lower(btrim(p.email))
    WHERE btrim(p.email) <> ''
  ) AS either
  GROUP BY advertiser_id, prefill_id, application_id
) AS m
JOIN intake.prefills p ON p.advertiser_id = m.advertiser_id AND p.prefill_id = m.prefill_id
JOIN intake.applications a ON a.advertiser_id = m.advertiser_id AND a.application_id = m.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = m.advertiser_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
-- Comments.
COMMENT ON COLUMN intake_analytics.answer_distribution.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.applications.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.applications_daily.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.attachment_problems.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.attachments.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.data_quality.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.job_seekers.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.jobs.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.screening_answers.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.screening_free_text.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.sweeps.advertiser IS 'The account''s name in the configuration.';

COMMENT ON VIEW intake_analytics.applications_weekly IS 'Applications per week and job, with the people behind them. Applications add up over jobs and weeks, people do not. A week without an application has no row.';
COMMENT ON COLUMN intake_analytics.applications_weekly.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.applications_weekly.week IS 'The Monday of the week of submission, on the source''s clocks; null where the time cannot be read.';
COMMENT ON COLUMN intake_analytics.applications_weekly.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.applications_weekly.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.applications_weekly.people IS 'Different persons among them, each counted once a week.';
COMMENT ON COLUMN intake_analytics.applications_weekly.screens IS 'Screening questionnaires answered; an application may have several.';
COMMENT ON COLUMN intake_analytics.applications_weekly.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake_analytics.applications_weekly.screens_failed IS 'Of those, failed; the rest has no known outcome.';
COMMENT ON COLUMN intake_analytics.applications_weekly.advertiser IS 'The account''s name in the configuration.';

COMMENT ON VIEW intake_analytics.events IS 'What happened to applications, one row per event, for thirty days: received, changed, ready, missing, erased. Consumers that act on events read intake.events.';
COMMENT ON COLUMN intake_analytics.events.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.events.event_id IS 'Rises in commit order within an advertiser; numbers may skip.';
COMMENT ON COLUMN intake_analytics.events.type IS 'application.received (stored for the first time), .changed, .ready (all files final), .missing (gone at the source) or .erased.';
COMMENT ON COLUMN intake_analytics.events.at IS 'When it happened.';
COMMENT ON COLUMN intake_analytics.events.at_local IS 'The same at +10:00.';
COMMENT ON COLUMN intake_analytics.events.application_id IS 'The application; null where it was erased, of which only the event application.erased is shown.';
COMMENT ON COLUMN intake_analytics.events.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.events.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered, and where the application was erased.';
COMMENT ON COLUMN intake_analytics.events.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.events.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.events.advertiser IS 'The account''s name in the configuration.';

COMMENT ON VIEW intake_analytics.prefill_applications IS 'People who filled in a form from their profile and also applied through the board: one row per prefill and application of the same person. Prefills that lapsed and persons who cannot be told are not in it.';
COMMENT ON COLUMN intake_analytics.prefill_applications.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.prefill_applications.prefill_id IS 'Names the prefill.';
COMMENT ON COLUMN intake_analytics.prefill_applications.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.prefill_applications.matched_by IS 'person_key: the profile names the account of the application, or the address of one without an account. address: only the e-mail addresses are equal, and an address can be shared.';
COMMENT ON COLUMN intake_analytics.prefill_applications.person_key IS 'Stands for the person, as in applications_anonymous.';
COMMENT ON COLUMN intake_analytics.prefill_applications.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.prefill_applications.clicked_at IS 'When the button on the careers site was clicked.';
COMMENT ON COLUMN intake_analytics.prefill_applications.redeemed_at IS 'When the careers site fetched the profile; null where it has not yet.';
COMMENT ON COLUMN intake_analytics.prefill_applications.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.prefill_applications.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.prefill_applications.seconds_after_click IS 'From the click to the application; below 0 where the application came first.';
COMMENT ON COLUMN intake_analytics.prefill_applications.advertiser IS 'The account''s name in the configuration.';

-- Comments that left a question open.
COMMENT ON COLUMN intake_analytics.completeness.advertiser IS 'The account''s name in the configuration.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.advertiser_id IS 'The source''s id of the account.';
COMMENT ON VIEW intake_analytics.applications_daily IS 'Applications per day and job: how many people apply, and how they are screened. Sum over job_reference for a day, over day for a job; people do not add up (weeks: applications_weekly). A day without an application has no row.';
