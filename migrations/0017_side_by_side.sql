-- expand
CREATE TABLE "intake"."processes" (
	"process" text PRIMARY KEY NOT NULL,
	"version" text NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"seen_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE intake.migrations ADD COLUMN lowest text;
--> statement-breakpoint
COMMENT ON TABLE intake.processes IS 'The processes that run on this database. intake migrate --finish waits until none of an older version is alive.';
--> statement-breakpoint
COMMENT ON COLUMN intake.processes.process IS 'Role, machine, process id and a random part; the same text as the owner of its leases.';
--> statement-breakpoint
COMMENT ON COLUMN intake.processes.version IS 'Its version of Intake.';
--> statement-breakpoint
COMMENT ON COLUMN intake.processes.started_at IS 'When it began.';
--> statement-breakpoint
COMMENT ON COLUMN intake.processes.seen_at IS 'When it last said that it is alive, which it does four times a minute.';
--> statement-breakpoint
COMMENT ON COLUMN intake.migrations.lowest IS 'The lowest version of Intake that may run since this migration; null where any may.';
