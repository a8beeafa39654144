ALTER TABLE "intake"."downloads" ADD COLUMN "failed_at" timestamp with time zone;
--> statement-breakpoint
COMMENT ON COLUMN intake.downloads.failed_at IS 'When an attempt last failed. The next one counts only if the list was read since.';
