-- A fingerprint stays known after its bytes are gone; the comments said that it is always that of stored ones.
COMMENT ON COLUMN intake.attachments.sha256 IS 'Fingerprint of the bytes, in hex. They are held where state is stored; elsewhere they are gone: flagged as a virus (infected), or lost and not replaced yet.';
COMMENT ON COLUMN intake.attachment_versions.sha256 IS 'Fingerprint of the bytes, in hex. They are held where state is stored; elsewhere they are gone: flagged as a virus, or lost.';
COMMENT ON COLUMN intake_analytics.attachments.sha256 IS 'Fingerprint of the bytes, in hex; names the object in the store where state is stored, elsewhere the bytes are gone.';
