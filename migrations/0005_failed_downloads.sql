-- Claiming a download increments attempts before the outcome is known, and an outage of the source or the storage does not count as an
-- attempt. So a download has failed if its trouble is set. A file in a final state is listed once, even while it is requested again.
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
SELECT d.advertiser_id, d.application_id, d.kind, 'waiting', d.trouble, d.attempts - (d.lease_token IS NOT NULL)::int, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset),
  CASE WHEN d.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', d.application_id, d.kind) END,
  intake.local_time(f.uploaded_at, a.source_offset), v.name
FROM intake.downloads d
JOIN intake.attachments f ON f.advertiser_id = d.advertiser_id AND f.application_id = d.application_id AND f.kind = d.kind
JOIN intake.applications a ON a.advertiser_id = d.advertiser_id AND a.application_id = d.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = d.advertiser_id
WHERE a.erased_at IS NULL AND d.trouble IS NOT NULL AND f.state IN ('pending', 'stored');
--> statement-breakpoint
COMMENT ON COLUMN intake_analytics.attachment_problems.attempts IS 'Failed attempts of a waiting download; failures during an outage of the source or the storage do not count.';
--> statement-breakpoint
COMMENT ON COLUMN intake.coverage.complete_through IS 'Applications submitted up to here are covered: the beginning of the sweep less SYNC_LAG, or less twice the longest delay that polls and rechecks saw in 30 days (at most a day) if that is longer.';
--> statement-breakpoint
-- The state of a sweep has the lowest and highest id and date of its applications. A sweep that has ended does not need it, and it would
-- outlive an erasure. ALTER COLUMN TYPE, with the same type, makes Postgres delete the planner statistics of the column.
UPDATE intake.sweeps SET facts = '{}' WHERE state <> 'running';
--> statement-breakpoint
ALTER TABLE intake.sweeps ALTER COLUMN facts TYPE jsonb, ALTER COLUMN facts SET STATISTICS 0;
--> statement-breakpoint
COMMENT ON COLUMN intake.sweeps.facts IS 'The state of a running sweep apart from its ranges, to continue after a stop; empty once it has ended.';
