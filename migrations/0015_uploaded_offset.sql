-- An attachment's date has its own offset. A row that was stored before has none until it changes; the application's is used then.
ALTER TABLE "intake"."attachments" ADD COLUMN "uploaded_offset" text;
--> statement-breakpoint
COMMENT ON COLUMN intake.attachments.uploaded_offset IS 'The offset of uploaded_at as the source wrote it, such as +11:00. Null where it wrote none, or Z, and for a file that was stored before this column.';
--> statement-breakpoint
COMMENT ON COLUMN intake.attachments.file_name IS 'File name that the source declared on download; never a path. Null where it declared none, and for a linked file: the same bytes were stored before, so they were not fetched again, and a name comes only with the bytes.';
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.attachments AS
SELECT f.advertiser_id, f.application_id, f.kind, f.version, f.state, f.reason, f.size_bytes, f.has_virus,
  f.uploaded_at, intake.local_time(f.uploaded_at, coalesce(f.uploaded_offset, a.source_offset)) AS uploaded_local,
  f.sha256, btrim(split_part(f.content_type, ';', 1)) AS content_type, f.detected_type, f.stored_at, f.gone_at,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  b.key AS blob_key, b.size_bytes AS stored_bytes, b.verified_at, v.name AS advertiser
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
LEFT JOIN intake.blobs b ON b.advertiser_id = f.advertiser_id AND b.sha256 = f.sha256 AND b.state = 'stored' AND f.state = 'stored'
LEFT JOIN intake.advertisers v ON v.advertiser_id = f.advertiser_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.attachment_problems AS
SELECT f.advertiser_id, f.application_id, f.kind, f.state AS problem, f.reason, 0 AS attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  CASE WHEN f.reason = 'its virus flag (HasVirus) cannot be read' THEN 'intake sync --recheck'
    WHEN f.state <> 'infected' AND f.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', f.application_id, f.kind) END AS next,
  intake.local_time(f.uploaded_at, coalesce(f.uploaded_offset, a.source_offset)) AS uploaded_local, v.name AS advertiser
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
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
JOIN intake.applications a ON a.advertiser_id = d.advertiser_id AND a.application_id = d.application_id
LEFT JOIN intake.advertisers v ON v.advertiser_id = d.advertiser_id
WHERE a.erased_at IS NULL AND d.trouble IS NOT NULL AND f.state IN ('pending', 'stored');
