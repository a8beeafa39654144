DROP TABLE "intake"."waits";
--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "troubles" jsonb DEFAULT '{}'::jsonb NOT NULL;
--> statement-breakpoint
COMMENT ON COLUMN intake.advertisers.troubles IS 'Why the reading, the downloads or the deletion of infected files of the account waits: what cannot be used, the reason, since when, and until when this holds if nobody says it again.';
