COMMENT ON TABLE intake.erasures IS 'What was erased and must not return: keyed hashes only. Whoever writes applications or quarantine looks here, inside the same transaction.';
COMMENT ON COLUMN intake.erasures.advertiser_id IS 'The advertiser whose data it was.';
COMMENT ON COLUMN intake.erasures.tombstone IS 'HMAC by PRIVACY_KEY of an application id, or of an element that was in quarantine. Without the key it leads nowhere.';
COMMENT ON COLUMN intake.erasures.job_id IS 'The job that erased it, see intake.erasure_jobs.';
COMMENT ON COLUMN intake.erasures.erased_at IS 'When it was erased.';
COMMENT ON TABLE intake.erasure_jobs IS 'Erasures as work: what is still to be done, and the receipt when nothing is. Names nobody.';
COMMENT ON COLUMN intake.erasure_jobs.advertiser_id IS 'The advertiser whose data is erased.';
COMMENT ON COLUMN intake.erasure_jobs.job_id IS 'Names the job and its receipt.';
COMMENT ON COLUMN intake.erasure_jobs.sought_by IS 'What the person was found by: application (its id), jobseeker (account id), address (e-mail) or retention (age).';
COMMENT ON COLUMN intake.erasure_jobs.sought IS 'HMAC by PRIVACY_KEY of what was sought, so that the same request finds its job again.';
COMMENT ON COLUMN intake.erasure_jobs.requested_at IS 'When the rows were erased: they went in the transaction that wrote this row.';
COMMENT ON COLUMN intake.erasure_jobs.requested_by IS 'Who asked: user and machine of the command, or retention.';
COMMENT ON COLUMN intake.erasure_jobs.step IS 'bytes (files are being deleted), waiting (for what ran at the time to lapse) or closed.';
COMMENT ON COLUMN intake.erasure_jobs.quiet_at IS 'When every lease and download that ran at the time has lapsed; only then comes the second look.';
COMMENT ON COLUMN intake.erasure_jobs.application_ids IS 'The applications, until the job is closed; null then, since together they tell that one person made them.';
COMMENT ON COLUMN intake.erasure_jobs.hashes IS 'sha256 of the files to delete where nobody else refers to them, until the job is closed; null then.';
COMMENT ON COLUMN intake.erasure_jobs.counts IS 'How many rows and files went, by kind.';
COMMENT ON COLUMN intake.erasure_jobs.looks IS 'How often it was looked again; the last look found nothing.';
COMMENT ON COLUMN intake.erasure_jobs.closed_at IS 'When the last look found nothing: the receipt.';
COMMENT ON TABLE intake.audit IS 'Who did what by hand: erase, export, url, retry, quarantine. Holds ids and counts, no personal data.';
COMMENT ON COLUMN intake.audit.advertiser_id IS 'The advertiser whose data it was.';
COMMENT ON COLUMN intake.audit.audit_id IS 'Numbers the rows.';
COMMENT ON COLUMN intake.audit.at IS 'When.';
COMMENT ON COLUMN intake.audit.action IS 'The command: erase, export, url, retry or quarantine.';
COMMENT ON COLUMN intake.audit.application_id IS 'The application it was about; null where it was about several or none.';
COMMENT ON COLUMN intake.audit.by IS 'User and machine that ran the command, or retention.';
COMMENT ON COLUMN intake.audit.facts IS 'Further ids, kinds and counts.';
COMMENT ON COLUMN intake.downloads.sha256 IS 'The bytes that are being put into the blob store for it; null before they are fetched.';
COMMENT ON COLUMN intake.advertisers.retention_due IS 'How many applications RETENTION would erase at once, where the brake holds them back until a person says so; null otherwise.';
--> statement-breakpoint
-- Counting by job reads this index alone: a tenth of the pages of the table, whose rows carry the source's whole object.
CREATE INDEX applications_job ON intake.applications (advertiser_id, job_reference, submitted_at) INCLUDE (application_id) WHERE erased_at IS NULL;
--> statement-breakpoint
COMMENT ON COLUMN intake.advertisers.erased_through IS 'The highest id of an erased application: only ids up to it are compared with the tombstones. Null while nobody was erased.';
