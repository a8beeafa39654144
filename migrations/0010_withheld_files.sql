-- A file whose virus flag cannot be read is fetched when a recheck finds that it can; `intake retry` leaves it out.
CREATE OR REPLACE VIEW intake_analytics.attachment_problems AS
SELECT f.advertiser_id, f.application_id, f.kind, f.state AS problem, f.reason, 0 AS attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  CASE WHEN f.reason = 'its virus flag (HasVirus) cannot be read' THEN 'intake sync --recheck'
    WHEN f.state <> 'infected' AND f.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
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
COMMENT ON COLUMN intake_analytics.attachment_problems.next IS 'The command that tries again. For a file whose virus flag cannot be read: the one that reads the flag again, after the source has corrected it. Null where nothing can be done.';
