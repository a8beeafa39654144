ALTER TABLE "intake"."erasure_jobs" ADD COLUMN "trouble" text;--> statement-breakpoint
COMMENT ON COLUMN intake.erasure_jobs.trouble IS 'What keeps the files from being deleted, in words; null where nothing does.';
