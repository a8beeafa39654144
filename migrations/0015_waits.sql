CREATE TABLE "intake"."waits" (
	"worker" text NOT NULL,
	"dependency" text NOT NULL,
	"reason" text NOT NULL,
	"advertisers" text[] NOT NULL,
	"since" timestamp with time zone NOT NULL,
	"seen_at" timestamp with time zone NOT NULL,
	CONSTRAINT "waits_pkey" PRIMARY KEY("worker","dependency","reason"),
	CONSTRAINT "waits_dependency" CHECK ("intake"."waits"."dependency" IN ('source', 'database', 'storage'))
);
--> statement-breakpoint
COMMENT ON TABLE intake.waits IS 'What workers wait for: a source, the database or the storage that cannot be used. A row whose worker stopped refreshing it says nothing any more.';--> statement-breakpoint
COMMENT ON COLUMN intake.waits.worker IS 'The process that waits: command, host, process id.';--> statement-breakpoint
COMMENT ON COLUMN intake.waits.dependency IS 'source, database or storage.';--> statement-breakpoint
COMMENT ON COLUMN intake.waits.reason IS 'What the worker met, in words: host, port and error code.';--> statement-breakpoint
COMMENT ON COLUMN intake.waits.advertisers IS 'Configured names of the accounts that wait; empty where all do.';--> statement-breakpoint
COMMENT ON COLUMN intake.waits.since IS 'When the wait began.';--> statement-breakpoint
COMMENT ON COLUMN intake.waits.seen_at IS 'When the worker last said so.';--> statement-breakpoint
-- An older version that meets a newer schema can say which version to use.
ALTER TABLE intake.migrations ADD COLUMN version text;--> statement-breakpoint
COMMENT ON COLUMN intake.migrations.version IS 'The version of Intake that applied it; null where an earlier version did.';--> statement-breakpoint
-- The type of an attachment is the source's text: only the kinds that the command knows are repeated in it. No command helps the others.
CREATE OR REPLACE VIEW intake_analytics.attachment_problems AS
SELECT f.advertiser_id, f.application_id, f.kind, f.state AS problem, f.reason, 0 AS attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  CASE WHEN f.state <> 'infected' AND f.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', f.application_id, f.kind) END AS next,
  intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
WHERE a.erased_at IS NULL AND f.state IN ('infected', 'missing', 'rejected', 'given_up')
UNION ALL
SELECT d.advertiser_id, d.application_id, d.kind, 'waiting', d.trouble, d.attempts, f.uploaded_at,
  a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset),
  CASE WHEN d.kind IN ('resume', 'coverLetter', 'selectionCriteria', 'screen')
    THEN format('intake retry --application %s --kind %s', d.application_id, d.kind) END,
  intake.local_time(f.uploaded_at, a.source_offset)
FROM intake.downloads d
JOIN intake.attachments f ON f.advertiser_id = d.advertiser_id AND f.application_id = d.application_id AND f.kind = d.kind
JOIN intake.applications a ON a.advertiser_id = d.advertiser_id AND a.application_id = d.application_id
WHERE a.erased_at IS NULL AND d.attempts > 0;
