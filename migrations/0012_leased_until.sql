-- A claim has a time of its own at which it lapses. Until now it moved due_at, which is in an index, so that every claim and every
-- heartbeat wrote the row anew and its entries in all indexes. Room on the pages keeps the new version beside the old one (HOT).
ALTER TABLE "intake"."downloads" ADD COLUMN "leased_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE intake.downloads SET (fillfactor = 50);--> statement-breakpoint
UPDATE intake.downloads SET leased_until = due_at, due_at = now() WHERE lease_token IS NOT NULL;--> statement-breakpoint
COMMENT ON COLUMN intake.downloads.due_at IS 'Not before this time.';--> statement-breakpoint
COMMENT ON COLUMN intake.downloads.leased_until IS 'When the claim on it lapses; null where there is none.';
