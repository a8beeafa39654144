-- Attachments and where they lie: the object's key, its true size, and when its bytes were last proven. New columns come last, so
-- comments, grants and whatever was built on the view stay.
CREATE OR REPLACE VIEW intake_analytics.attachments AS
SELECT f.advertiser_id, f.application_id, f.kind, f.version, f.state, f.reason, f.size_bytes, f.has_virus,
  f.uploaded_at, intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local,
  f.sha256, f.content_type, f.detected_type, f.stored_at, f.gone_at,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  b.key AS blob_key, b.size_bytes AS stored_bytes, b.verified_at
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
LEFT JOIN intake.blobs b ON b.advertiser_id = f.advertiser_id AND b.sha256 = f.sha256 AND b.state = 'stored' AND f.state = 'stored'
WHERE a.erased_at IS NULL;
COMMENT ON COLUMN intake_analytics.attachments.blob_key IS 'Where the bytes lie, relative to BLOBS_URL; null where none are held. Attachments with equal bytes share it.';
COMMENT ON COLUMN intake_analytics.attachments.stored_bytes IS 'True size of the stored bytes; size_bytes is what the source says.';
COMMENT ON COLUMN intake_analytics.attachments.verified_at IS 'When the store was last proven to hold these bytes.';
