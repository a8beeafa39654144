ALTER TABLE "intake"."advertisers" ADD COLUMN "throttled_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "throttled_ms" bigint;--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "answered_url" text;--> statement-breakpoint
COMMENT ON COLUMN intake.advertisers.throttled_until IS 'No worker asks the source for this account before this time: its last Retry-After.';--> statement-breakpoint
COMMENT ON COLUMN intake.advertisers.throttled_ms IS 'How long that Retry-After was. A throttled_until further ahead was written by a clock that has been set back since.';--> statement-breakpoint
COMMENT ON COLUMN intake.advertisers.answered_url IS 'The base URL whose list has answered; there a 404 means that nothing matches. Elsewhere it means a wrong base URL.';
