DROP TABLE "intake"."waits";
--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "troubles" jsonb DEFAULT '{}'::jsonb NOT NULL;
--> statement-breakpoint
COMMENT ON COLUMN intake.advertisers.troubles IS 'Why the reading, the downloads or the deletion of infected files of the account waits: what cannot be used, the reason, since when, and until when this holds if nobody says it again.';
--> statement-breakpoint
UPDATE intake.primary_job_seeking_info SET job_title = NULL, company_name = NULL, time_in_role_months = NULL, is_new_to_workforce = NULL
WHERE gone_at IS NOT NULL;
--> statement-breakpoint
COMMENT ON COLUMN intake.primary_job_seeking_info.gone_at IS 'When the source stopped sending it; its values are then null.';
