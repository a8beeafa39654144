-- expand
CREATE TABLE "intake"."webhooks" (
	"advertiser_id" bigint NOT NULL,
	"name" text NOT NULL,
	"position" bigint DEFAULT 0 NOT NULL,
	-- squawk-ignore prefer-bigint-over-int -- failures in a row, at most hundreds
	"failures" integer DEFAULT 0 NOT NULL,
	"failing_since" timestamp with time zone,
	"next_at" timestamp with time zone,
	"stop" text,
	"last_answer" text,
	"answered_at" timestamp with time zone,
	"removed_at" timestamp with time zone,
	CONSTRAINT "webhooks_pkey" PRIMARY KEY("advertiser_id","name"),
	CONSTRAINT "webhooks_stop" CHECK ("intake"."webhooks"."stop" IN ('gone', 'lost'))
);
--> statement-breakpoint
COMMENT ON TABLE intake.webhooks IS 'The endpoints that workers deliver events to, and how far each is. One row per configured endpoint.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.advertiser_id IS 'The advertiser whose events it gets.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.name IS 'Its name in the configuration.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.position IS 'The last event that it took or passed: of a type that it does not want, or older than four weeks when it was new; 0 if there is none. Written after its answer, so that a crash repeats events and skips none.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.failures IS 'Attempts in a row at the next event that it did not take, with the one under way.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.failing_since IS 'When it first answered one of them with a failure. After 75 hours the endpoint counts as halted.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.next_at IS 'When the next event is tried again, unless an attempt under way succeeds; null after it took the last one.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.stop IS 'Why only intake retry --webhook continues: gone (it answered 410) or lost (events were deleted before it took them).';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.last_answer IS 'What it answered last, in words of Intake.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.answered_at IS 'When it answered last, or failed to.';
--> statement-breakpoint
COMMENT ON COLUMN intake.webhooks.removed_at IS 'When a worker started without it in its settings. The status leaves it out.';
