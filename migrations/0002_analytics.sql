-- What analysts read. Rules: nothing a person typed or is called by stands outside the two views that say so in their comment
-- (applications, screening_free_text); columns are only ever added; erased people are in none of them.
-- The source writes times with an offset, in Australian Eastern time: every time of the source also stands here as its own local time.
CREATE FUNCTION intake.local_time(at timestamptz, source_offset text) RETURNS timestamp
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN at AT TIME ZONE make_interval(
  hours => left(coalesce(source_offset, '+10:00'), 3)::int,
  mins => (left(coalesce(source_offset, '+10:00'), 1) || right(coalesce(source_offset, '+10:00'), 2))::int);
COMMENT ON FUNCTION intake.local_time(timestamptz, text) IS 'A time as the source''s clocks show it: by the offset written beside it (as +11:00), by +10:00 where none was. Unlike source_offset::interval it may stand in an index.';

-- Days, people and problems are what views are filtered by; the last index holds the few attachments that went wrong.
CREATE INDEX applications_local_day ON intake.applications (advertiser_id, (intake.local_time(submitted_at, source_offset)::date));
CREATE INDEX applications_person ON intake.applications (advertiser_id, person_key);
CREATE INDEX attachments_problems ON intake.attachments (advertiser_id, state) WHERE state IN ('infected', 'missing', 'rejected', 'given_up');

CREATE VIEW intake_analytics.applications AS
SELECT a.advertiser_id, a.application_id, a.person_key, a.job_reference,
  a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, a.source_offset,
  a.email, a.first_name, a.last_name, a.phone, a.job_seeker_id,
  i.job_title AS current_job_title, i.company_name AS current_company, i.time_in_role_months, i.is_new_to_workforce,
  (SELECT CASE WHEN bool_or(s.outcome = 'fail') THEN 'fail' WHEN bool_or(s.outcome = 'unknown') THEN 'unknown' ELSE max(s.outcome) END
   FROM intake.screens s WHERE s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id) AS screening_outcome,
  a.first_seen_at, a.changed_at, a.ready_at, a.missing_since, a.notes
FROM intake.applications a
LEFT JOIN intake.primary_job_seeking_info i
  ON i.advertiser_id = a.advertiser_id AND i.application_id = a.application_id AND i.gone_at IS NULL
WHERE a.erased_at IS NULL;

CREATE VIEW intake_analytics.applications_anonymous AS
SELECT a.advertiser_id, a.application_id, a.person_key, a.job_reference,
  a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, a.source_offset,
  i.time_in_role_months, i.is_new_to_workforce,
  (SELECT CASE WHEN bool_or(s.outcome = 'fail') THEN 'fail' WHEN bool_or(s.outcome = 'unknown') THEN 'unknown' ELSE max(s.outcome) END
   FROM intake.screens s WHERE s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id) AS screening_outcome,
  a.first_seen_at, a.changed_at, a.ready_at, a.missing_since
FROM intake.applications a
LEFT JOIN intake.primary_job_seeking_info i
  ON i.advertiser_id = a.advertiser_id AND i.application_id = a.application_id AND i.gone_at IS NULL
WHERE a.erased_at IS NULL;

-- Screens count from 1, so an application without a screen, or its first screen, counts the application once, whatever it joins to.
CREATE VIEW intake_analytics.applications_daily AS
SELECT a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date AS day, a.job_reference,
  count(*) FILTER (WHERE coalesce(s.screen_no, 1) = 1) AS applications,
  count(DISTINCT a.person_key) AS people,
  count(s.screen_no) AS screens,
  count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed,
  count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
FROM intake.applications a
LEFT JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id
WHERE a.erased_at IS NULL
GROUP BY a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date, a.job_reference;

-- "Now" is when the source was last read, not the clock: a worker that stood still makes no job dry up. Screens are counted apart
-- and joined by plain equality, so that a query that does not ask for them does not read them; local times are looked up for the few rows shown.
CREATE VIEW intake_analytics.jobs AS
SELECT j.advertiser_id, j.job_reference, j.applications,
  j.first_application_at, j.last_application_at,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.first_application_at LIMIT 1) AS first_application_local,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.last_application_at LIMIT 1) AS last_application_local,
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

-- An erased application has no person_key: it needs no further condition, and counting reads the index alone.
CREATE VIEW intake_analytics.job_seekers AS
SELECT p.advertiser_id, p.person_key, p.applications, p.jobs,
  p.first_application_at, p.last_application_at, p.first_application_local, p.last_application_local,
  coalesce(s.screens, 0) AS screens, coalesce(s.screens_passed, 0) AS screens_passed, coalesce(s.screens_failed, 0) AS screens_failed
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
) AS s ON s.advertiser_id = p.advertiser_id AND s.person_key = p.person_key;

CREATE VIEW intake_analytics.screening_outcomes AS
SELECT s.advertiser_id, s.application_id, s.screen_no, s.screen_id, s.name AS screen_name, s.outcome,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local
FROM intake.screens s
JOIN intake.applications a ON a.advertiser_id = s.advertiser_id AND a.application_id = s.application_id
WHERE a.erased_at IS NULL;

-- Offered answers are the advertiser's words. What a person typed is not shown here: Text, URLQuestion and types we do not know.
CREATE VIEW intake_analytics.screening_answers AS
SELECT w.advertiser_id, w.application_id, w.screen_no, w.question_no, w.answer_no,
  s.screen_id, s.name AS screen_name, s.outcome, q.question_id, q.type AS question_type, q.text AS question_text, w.answer_id,
  CASE WHEN q.type IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False') THEN w.text END AS answer_text,
  w.selected, a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local
FROM intake.screen_answers w
JOIN intake.screen_questions q ON q.advertiser_id = w.advertiser_id AND q.application_id = w.application_id
  AND q.screen_no = w.screen_no AND q.question_no = w.question_no
JOIN intake.screens s ON s.advertiser_id = w.advertiser_id AND s.application_id = w.application_id AND s.screen_no = w.screen_no
JOIN intake.applications a ON a.advertiser_id = w.advertiser_id AND a.application_id = w.application_id
WHERE a.erased_at IS NULL;

CREATE VIEW intake_analytics.screening_free_text AS
SELECT w.advertiser_id, w.application_id, w.screen_no, w.question_no, w.answer_no,
  s.screen_id, s.name AS screen_name, s.outcome, q.question_id, q.type AS question_type, q.text AS question_text, w.text AS answer_text,
  w.selected, a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local
FROM intake.screen_answers w
JOIN intake.screen_questions q ON q.advertiser_id = w.advertiser_id AND q.application_id = w.application_id
  AND q.screen_no = w.screen_no AND q.question_no = w.question_no
JOIN intake.screens s ON s.advertiser_id = w.advertiser_id AND s.application_id = w.application_id AND s.screen_no = w.screen_no
JOIN intake.applications a ON a.advertiser_id = w.advertiser_id AND a.application_id = w.application_id
WHERE a.erased_at IS NULL
  AND (q.type IS NULL OR q.type NOT IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False'));

-- A question keeps its id when its wording changes; without an id its wording is all that names it.
CREATE VIEW intake_analytics.answer_distribution AS
SELECT d.advertiser_id, d.job_reference, d.screen_id, d.question_id, d.question_type, d.question_text,
  dense_rank() OVER (PARTITION BY d.advertiser_id, d.job_reference, d.screen_id, coalesce(d.question_id, d.question_text)
    ORDER BY d.asked_since, d.question_text) AS wording,
  d.answer_text, d.offered, d.chosen, round(d.chosen::numeric / d.offered, 4) AS share,
  round(d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS pass_rate_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0), 4) AS pass_rate_not_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0) - d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS knock_out_power,
  d.first_offered_at, d.last_offered_at
FROM (
  SELECT a.advertiser_id, a.job_reference, s.screen_id, q.question_id, q.type AS question_type, q.text AS question_text,
    w.text AS answer_text, count(*) AS offered, count(*) FILTER (WHERE w.selected) AS chosen,
    count(*) FILTER (WHERE w.selected AND s.outcome = 'pass') AS chosen_passed,
    count(*) FILTER (WHERE w.selected AND s.outcome <> 'unknown') AS chosen_judged,
    count(*) FILTER (WHERE NOT w.selected AND s.outcome = 'pass') AS other_passed,
    count(*) FILTER (WHERE NOT w.selected AND s.outcome <> 'unknown') AS other_judged,
    min(a.submitted_at) AS first_offered_at, max(a.submitted_at) AS last_offered_at,
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

CREATE VIEW intake_analytics.attachments AS
SELECT f.advertiser_id, f.application_id, f.kind, f.version, f.state, f.reason, f.size_bytes, f.has_virus,
  f.uploaded_at, intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local,
  f.sha256, f.content_type, f.detected_type, f.stored_at, f.gone_at,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
WHERE a.erased_at IS NULL;

CREATE VIEW intake_analytics.attachment_problems AS
SELECT f.advertiser_id, f.application_id, f.kind, f.state AS problem, f.reason, 0 AS attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  CASE WHEN f.state <> 'infected' THEN format('intake retry --application %s --kind %s', f.application_id, f.kind) END AS next
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
WHERE a.erased_at IS NULL AND f.state IN ('infected', 'missing', 'rejected', 'given_up')
UNION ALL
SELECT d.advertiser_id, d.application_id, d.kind, 'waiting', d.trouble, d.attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset),
  format('intake retry --application %s --kind %s', d.application_id, d.kind)
FROM intake.downloads d
JOIN intake.attachments f ON f.advertiser_id = d.advertiser_id AND f.application_id = d.application_id AND f.kind = d.kind
JOIN intake.applications a ON a.advertiser_id = d.advertiser_id AND a.application_id = d.application_id
WHERE a.erased_at IS NULL AND d.attempts > 0;

-- What was submitted before the account was first read is history, not delay.
CREATE VIEW intake_analytics.ingest_delay_daily AS
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
GROUP BY a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date;

CREATE VIEW intake_analytics.sweeps AS
SELECT s.advertiser_id, s.sweep_id, s.lane, s.purpose, s.axis, s.low, s.high, s.state, s.certificate, s.reason,
  s.started_at, s.moved_at, s.ended_at, round(extract(epoch FROM coalesce(s.ended_at, s.moved_at) - s.started_at), 3) AS seconds,
  s.requests, s.received, s.added, s.changed, s.bytes,
  (SELECT count(*) FROM intake.gaps g WHERE g.advertiser_id = s.advertiser_id AND g.sweep_id = s.sweep_id) AS gaps
FROM intake.sweeps s;

CREATE VIEW intake_analytics.data_quality AS
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
FROM intake.quarantine q WHERE q.resolved_at IS NULL GROUP BY q.advertiser_id, q.reason;

COMMENT ON VIEW intake_analytics.applications IS 'Applications with PERSONAL DATA: who applied for what, and when. Without personal data: applications_anonymous.';
COMMENT ON COLUMN intake_analytics.applications.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.applications.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.applications.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.applications.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.applications.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.applications.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.applications.source_offset IS 'The offset from UTC that the source wrote beside the time.';
COMMENT ON COLUMN intake_analytics.applications.email IS 'Contact e-mail address. Not a key: it can be missing, shared or wrong.';
COMMENT ON COLUMN intake_analytics.applications.first_name IS 'First name.';
COMMENT ON COLUMN intake_analytics.applications.last_name IS 'Last name.';
COMMENT ON COLUMN intake_analytics.applications.phone IS 'Contact phone number, as text.';
COMMENT ON COLUMN intake_analytics.applications.job_seeker_id IS 'The source''s id of the jobseeker''s account.';
COMMENT ON COLUMN intake_analytics.applications.current_job_title IS 'Current or most recent job title, as the jobseeker typed it.';
COMMENT ON COLUMN intake_analytics.applications.current_company IS 'Current or most recent company, as the jobseeker typed it.';
COMMENT ON COLUMN intake_analytics.applications.time_in_role_months IS 'Months in the current or most recent role.';
COMMENT ON COLUMN intake_analytics.applications.is_new_to_workforce IS 'Whether the jobseeker is new to the workforce.';
COMMENT ON COLUMN intake_analytics.applications.screening_outcome IS 'fail when any of its screens failed, pass when all passed, unknown when the source does not say; null without a screen.';
COMMENT ON COLUMN intake_analytics.applications.first_seen_at IS 'When Intake first stored it.';
COMMENT ON COLUMN intake_analytics.applications.changed_at IS 'When the stored facts last changed.';
COMMENT ON COLUMN intake_analytics.applications.ready_at IS 'When the last of its attachments reached a final state; null while one is pending.';
COMMENT ON COLUMN intake_analytics.applications.missing_since IS 'Since when it is confirmed to be gone at the source.';
COMMENT ON COLUMN intake_analytics.applications.notes IS 'What could not be kept as it came: a list of field and reason.';
COMMENT ON VIEW intake_analytics.applications_anonymous IS 'Applications without personal data: count, filter and join by person_key. Nothing that a person typed is in it.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.applications_anonymous.source_offset IS 'The offset from UTC that the source wrote beside the time.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.time_in_role_months IS 'Months in the current or most recent role.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.is_new_to_workforce IS 'Whether the jobseeker is new to the workforce.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.screening_outcome IS 'fail when any of its screens failed, pass when all passed, unknown when the source does not say; null without a screen.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.first_seen_at IS 'When Intake first stored it.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.changed_at IS 'When the stored facts last changed.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.ready_at IS 'When the last of its attachments reached a final state; null while one is pending.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.missing_since IS 'Since when it is confirmed to be gone at the source.';
COMMENT ON VIEW intake_analytics.applications_daily IS 'Applications per day and job: how many people apply, and how they are screened. Sum over job_reference for a day, over day for a job; people do not add up.';
COMMENT ON COLUMN intake_analytics.applications_daily.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.applications_daily.day IS 'Day of submission on the source''s clocks; null where the time cannot be read.';
COMMENT ON COLUMN intake_analytics.applications_daily.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.applications_daily.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.applications_daily.people IS 'Different persons among them.';
COMMENT ON COLUMN intake_analytics.applications_daily.screens IS 'Screening questionnaires answered; an application may have several.';
COMMENT ON COLUMN intake_analytics.applications_daily.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake_analytics.applications_daily.screens_failed IS 'Of those, failed; the rest has no known outcome.';
COMMENT ON VIEW intake_analytics.jobs IS 'Jobs: how much interest, since when, still alive? One row per advertiser and job reference, all ads without a reference in one.';
COMMENT ON COLUMN intake_analytics.jobs.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.jobs.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.jobs.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.jobs.first_application_at IS 'When the first was made.';
COMMENT ON COLUMN intake_analytics.jobs.last_application_at IS 'When the last was made.';
COMMENT ON COLUMN intake_analytics.jobs.first_application_local IS 'The first on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.jobs.last_application_local IS 'The last on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.jobs.applications_last_7_days IS 'Applications in the seven days before as_of.';
COMMENT ON COLUMN intake_analytics.jobs.applications_28_days_before IS 'Applications in the four weeks before those seven days.';
COMMENT ON COLUMN intake_analytics.jobs.screens IS 'Screening questionnaires answered; null where none was, and for ads without a reference, which are many jobs in one row.';
COMMENT ON COLUMN intake_analytics.jobs.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake_analytics.jobs.screens_failed IS 'Of those, failed; the rest has no known outcome.';
COMMENT ON COLUMN intake_analytics.jobs.pass_rate IS 'Passed of those with a known outcome, from 0 to 1.';
COMMENT ON COLUMN intake_analytics.jobs.dried_up IS 'True where nobody applied in the last seven days though four or more did in the four weeks before.';
COMMENT ON COLUMN intake_analytics.jobs.as_of IS 'When the source was last read: the "now" of this row.';
COMMENT ON VIEW intake_analytics.job_seekers IS 'Jobseekers by what they did, without who they are: repeat applicants have applications > 1. One person may apply for one job several times.';
COMMENT ON COLUMN intake_analytics.job_seekers.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.job_seekers.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.job_seekers.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.job_seekers.jobs IS 'Different job references among them; ads without one do not count.';
COMMENT ON COLUMN intake_analytics.job_seekers.first_application_at IS 'When the first was made.';
COMMENT ON COLUMN intake_analytics.job_seekers.last_application_at IS 'When the last was made.';
COMMENT ON COLUMN intake_analytics.job_seekers.first_application_local IS 'The first on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.job_seekers.last_application_local IS 'The last on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.job_seekers.screens IS 'Screening questionnaires answered; an application may have several.';
COMMENT ON COLUMN intake_analytics.job_seekers.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake_analytics.job_seekers.screens_failed IS 'Of those, failed; the rest has no known outcome.';
COMMENT ON VIEW intake_analytics.screening_outcomes IS 'Screens and their outcomes: who passes, by job, questionnaire and time. One row per screen answered.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.screen_no IS 'Place among the application''s screens, from 1.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.screen_name IS 'The advertiser''s name for the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.outcome IS 'pass, fail or unknown: what the source made of the answers.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON VIEW intake_analytics.screening_answers IS 'Every answer that was offered, and whether it was chosen. What people typed is left out: screening_free_text has it.';
COMMENT ON COLUMN intake_analytics.screening_answers.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.screening_answers.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.screening_answers.screen_no IS 'Place among the application''s screens, from 1.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_no IS 'Place in the screen, from 1.';
COMMENT ON COLUMN intake_analytics.screening_answers.answer_no IS 'Place in the question, from 1.';
COMMENT ON COLUMN intake_analytics.screening_answers.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_answers.screen_name IS 'The advertiser''s name for the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_answers.outcome IS 'pass, fail or unknown: what the source made of the answers.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_id IS 'The source''s id of the question.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_type IS 'The source''s word: MultipleChoiceOneAnswer, MultipleChoiceManyAnswers, True/False, Text, URLQuestion, or another.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_text IS 'The question.';
COMMENT ON COLUMN intake_analytics.screening_answers.answer_id IS 'The source''s id of the answer.';
COMMENT ON COLUMN intake_analytics.screening_answers.answer_text IS 'The answer offered; null for what a person typed.';
COMMENT ON COLUMN intake_analytics.screening_answers.selected IS 'Whether the jobseeker chose it.';
COMMENT ON COLUMN intake_analytics.screening_answers.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.screening_answers.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.screening_answers.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.screening_answers.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON VIEW intake_analytics.screening_free_text IS 'What people typed into screens: PERSONAL DATA. Text and URL questions, and types that Intake does not know.';
COMMENT ON COLUMN intake_analytics.screening_free_text.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.screening_free_text.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.screening_free_text.screen_no IS 'Place among the application''s screens, from 1.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_no IS 'Place in the screen, from 1.';
COMMENT ON COLUMN intake_analytics.screening_free_text.answer_no IS 'Place in the question, from 1.';
COMMENT ON COLUMN intake_analytics.screening_free_text.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_free_text.screen_name IS 'The advertiser''s name for the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_free_text.outcome IS 'pass, fail or unknown: what the source made of the answers.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_id IS 'The source''s id of the question.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_type IS 'The source''s word: MultipleChoiceOneAnswer, MultipleChoiceManyAnswers, True/False, Text, URLQuestion, or another.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_text IS 'The question.';
COMMENT ON COLUMN intake_analytics.screening_free_text.answer_text IS 'The text as typed.';
COMMENT ON COLUMN intake_analytics.screening_free_text.selected IS 'Whether the source marks it as entered.';
COMMENT ON COLUMN intake_analytics.screening_free_text.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.screening_free_text.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.screening_free_text.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.screening_free_text.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON VIEW intake_analytics.answer_distribution IS 'What people answer, and which answers knock out: per job, questionnaire and offered answer, also those nobody chose. Filter by job_reference.';
COMMENT ON COLUMN intake_analytics.answer_distribution.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.answer_distribution.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.answer_distribution.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.answer_distribution.question_id IS 'The source''s id of the question.';
COMMENT ON COLUMN intake_analytics.answer_distribution.question_type IS 'The source''s word: MultipleChoiceOneAnswer, MultipleChoiceManyAnswers, True/False, Text, URLQuestion, or another.';
COMMENT ON COLUMN intake_analytics.answer_distribution.question_text IS 'The question.';
COMMENT ON COLUMN intake_analytics.answer_distribution.wording IS 'Numbers the wordings that one question has had, oldest first: filter by question_id to see them side by side.';
COMMENT ON COLUMN intake_analytics.answer_distribution.answer_text IS 'The answer offered.';
COMMENT ON COLUMN intake_analytics.answer_distribution.offered IS 'How often it was offered.';
COMMENT ON COLUMN intake_analytics.answer_distribution.chosen IS 'How often it was chosen.';
COMMENT ON COLUMN intake_analytics.answer_distribution.share IS 'Chosen of offered, from 0 to 1.';
COMMENT ON COLUMN intake_analytics.answer_distribution.pass_rate_chosen IS 'Share of passed screens among those that chose it and have a known outcome.';
COMMENT ON COLUMN intake_analytics.answer_distribution.pass_rate_not_chosen IS 'The same among those that were offered it and did not choose it.';
COMMENT ON COLUMN intake_analytics.answer_distribution.knock_out_power IS 'How much lower the pass rate is with this answer: 1 means that it decides, 0 that it does not matter, below 0 that it helps.';
COMMENT ON COLUMN intake_analytics.answer_distribution.first_offered_at IS 'Submission time of the first application that was offered it.';
COMMENT ON COLUMN intake_analytics.answer_distribution.last_offered_at IS 'Submission time of the last one.';
COMMENT ON VIEW intake_analytics.attachments IS 'Attachments, whether they are stored, and where: one row per application and kind, the newest version. File names are personal data and not in it.';
COMMENT ON COLUMN intake_analytics.attachments.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.attachments.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.attachments.kind IS 'resume, coverLetter, selectionCriteria or screen; another type keeps its own text.';
COMMENT ON COLUMN intake_analytics.attachments.version IS 'Counts the files that this kind has had.';
COMMENT ON COLUMN intake_analytics.attachments.state IS 'pending, stored, infected, missing, rejected, given_up or erased.';
COMMENT ON COLUMN intake_analytics.attachments.reason IS 'Why the state is missing, rejected or given_up.';
COMMENT ON COLUMN intake_analytics.attachments.size_bytes IS 'Size as the source states it.';
COMMENT ON COLUMN intake_analytics.attachments.has_virus IS 'The source''s flag; null while it has not said.';
COMMENT ON COLUMN intake_analytics.attachments.uploaded_at IS 'When the file was attached.';
COMMENT ON COLUMN intake_analytics.attachments.uploaded_local IS 'The same on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.attachments.sha256 IS 'Fingerprint of the stored bytes, in hex; names the object in the store.';
COMMENT ON COLUMN intake_analytics.attachments.content_type IS 'Type that the source declared.';
COMMENT ON COLUMN intake_analytics.attachments.detected_type IS 'Type found by looking at the bytes.';
COMMENT ON COLUMN intake_analytics.attachments.stored_at IS 'When the bytes were stored and verified.';
COMMENT ON COLUMN intake_analytics.attachments.gone_at IS 'When the source stopped listing it.';
COMMENT ON COLUMN intake_analytics.attachments.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.attachments.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.attachments.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.attachments.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON VIEW intake_analytics.attachment_problems IS 'Attachments that need a look: final states other than stored, and downloads that failed and wait for another try.';
COMMENT ON COLUMN intake_analytics.attachment_problems.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.attachment_problems.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.attachment_problems.kind IS 'resume, coverLetter, selectionCriteria or screen; another type keeps its own text.';
COMMENT ON COLUMN intake_analytics.attachment_problems.problem IS 'infected, missing, rejected, given_up or waiting.';
COMMENT ON COLUMN intake_analytics.attachment_problems.reason IS 'Why, in words.';
COMMENT ON COLUMN intake_analytics.attachment_problems.attempts IS 'Failed tries of one that waits.';
COMMENT ON COLUMN intake_analytics.attachment_problems.uploaded_at IS 'When the file was attached.';
COMMENT ON COLUMN intake_analytics.attachment_problems.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.attachment_problems.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.attachment_problems.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.attachment_problems.next IS 'The command that tries again; null where nothing can be done.';
COMMENT ON VIEW intake_analytics.ingest_delay_daily IS 'How long applications take from submission to the database, per day; only those made after the account was first read.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.day IS 'Day of submission on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.median_seconds IS 'Half of them were stored within this.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.p95_seconds IS '95 of 100 were stored within this.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.max_seconds IS 'The slowest.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.ready IS 'How many have all their attachments settled.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.median_seconds_to_ready IS 'Half of those were complete with their attachments within this.';
COMMENT ON VIEW intake_analytics.sweeps IS 'Readings of the list: what was asked, what came, and the certificate. Polls that found nothing new have no row.';
COMMENT ON COLUMN intake_analytics.sweeps.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.sweeps.sweep_id IS 'Counts sweeps; numbers may skip.';
COMMENT ON COLUMN intake_analytics.sweeps.lane IS 'live or backfill.';
COMMENT ON COLUMN intake_analytics.sweeps.purpose IS 'live, recheck, backfill or witness.';
COMMENT ON COLUMN intake_analytics.sweeps.axis IS 'id, or date: low and high are seconds since 1970 then.';
COMMENT ON COLUMN intake_analytics.sweeps.low IS 'First position of the range.';
COMMENT ON COLUMN intake_analytics.sweeps.high IS 'Last position of the range; null is no end.';
COMMENT ON COLUMN intake_analytics.sweeps.state IS 'running, closed (read to its end), open (ended with gaps left) or dropped.';
COMMENT ON COLUMN intake_analytics.sweeps.certificate IS 'proven, assumed or unproven, once ended.';
COMMENT ON COLUMN intake_analytics.sweeps.reason IS 'What the certificate rests on, or why there is none.';
COMMENT ON COLUMN intake_analytics.sweeps.started_at IS 'When its first question was asked.';
COMMENT ON COLUMN intake_analytics.sweeps.moved_at IS 'When its last answer was booked.';
COMMENT ON COLUMN intake_analytics.sweeps.ended_at IS 'When it ended.';
COMMENT ON COLUMN intake_analytics.sweeps.seconds IS 'How long it took, or runs already.';
COMMENT ON COLUMN intake_analytics.sweeps.requests IS 'Questions asked.';
COMMENT ON COLUMN intake_analytics.sweeps.received IS 'Applications returned, with repetitions.';
COMMENT ON COLUMN intake_analytics.sweeps.added IS 'Applications that were new.';
COMMENT ON COLUMN intake_analytics.sweeps.changed IS 'Applications that had changed.';
COMMENT ON COLUMN intake_analytics.sweeps.bytes IS 'Bytes of the answers.';
COMMENT ON COLUMN intake_analytics.sweeps.gaps IS 'Ranges that it left open.';
COMMENT ON VIEW intake_analytics.data_quality IS 'What is odd about the data, by advertiser: fields that are missing, values that could not be kept, elements in quarantine. Findings of the first kind are listed also where nothing is affected.';
COMMENT ON COLUMN intake_analytics.data_quality.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.data_quality.finding IS 'A stable word for the kind of finding.';
COMMENT ON COLUMN intake_analytics.data_quality.meaning IS 'The finding in words; for noted and quarantined the field or the reason.';
COMMENT ON COLUMN intake_analytics.data_quality.affected IS 'How many applications, screens or elements.';
COMMENT ON COLUMN intake_analytics.data_quality.out_of IS 'Of how many applications; null where that makes no sense.';
COMMENT ON COLUMN intake_analytics.data_quality.share IS 'affected of out_of, from 0 to 1.';
COMMENT ON COLUMN intake_analytics.data_quality.example_application_id IS 'The smallest id affected: one to look at.';
