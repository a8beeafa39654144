CREATE SCHEMA IF NOT EXISTS "intake";
--> statement-breakpoint
CREATE SEQUENCE "intake"."event_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "intake"."request_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "intake"."sweep_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "intake"."applications" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"submitted_at" timestamp with time zone,
	"source_offset" text,
	"email" text,
	"first_name" text,
	"last_name" text,
	"phone" text,
	"job_seeker_id" text,
	"job_reference" text,
	"raw" jsonb,
	"raw_text" text,
	"notes" jsonb,
	"person_key" text,
	"content_hash" "bytea" NOT NULL,
	"observed_seq" bigint NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"changed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ready_at" timestamp with time zone,
	"absent_since" timestamp with time zone,
	"missing_since" timestamp with time zone,
	"erased_at" timestamp with time zone,
	CONSTRAINT "applications_pkey" PRIMARY KEY("advertiser_id","application_id")
);
--> statement-breakpoint
CREATE TABLE "intake"."attachment_versions" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"kind" text NOT NULL,
	"version" integer NOT NULL,
	"state" text NOT NULL,
	"reason" text,
	"source_hash" text,
	"size_bytes" bigint,
	"has_virus" boolean,
	"uploaded_at" timestamp with time zone,
	"sha256" text,
	"content_type" text,
	"detected_type" text,
	"file_name" text,
	"stored_at" timestamp with time zone,
	"replaced_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "attachment_versions_pkey" PRIMARY KEY("advertiser_id","application_id","kind","version"),
	CONSTRAINT "attachment_versions_state" CHECK ("intake"."attachment_versions"."state" IN ('pending', 'stored', 'infected', 'missing', 'rejected', 'given_up', 'erased'))
);
--> statement-breakpoint
CREATE TABLE "intake"."attachments" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"kind" text NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"state" text NOT NULL,
	"reason" text,
	"source_hash" text,
	"size_bytes" bigint,
	"has_virus" boolean,
	"uploaded_at" timestamp with time zone,
	"href" text,
	"sha256" text,
	"content_type" text,
	"detected_type" text,
	"file_name" text,
	"stored_at" timestamp with time zone,
	"gone_at" timestamp with time zone,
	"notes" jsonb,
	"linked" boolean DEFAULT false NOT NULL,
	"parser_version" integer,
	CONSTRAINT "attachments_pkey" PRIMARY KEY("advertiser_id","application_id","kind"),
	CONSTRAINT "attachments_state" CHECK ("intake"."attachments"."state" IN ('pending', 'stored', 'infected', 'missing', 'rejected', 'given_up', 'erased')),
	CONSTRAINT "attachments_stored" CHECK ("intake"."attachments"."state" <> 'stored' OR ("intake"."attachments"."sha256" IS NOT NULL AND "intake"."attachments"."stored_at" IS NOT NULL)),
	CONSTRAINT "attachments_reason" CHECK ("intake"."attachments"."state" NOT IN ('missing', 'rejected', 'given_up') OR "intake"."attachments"."reason" IS NOT NULL)
);
--> statement-breakpoint
CREATE TABLE "intake"."primary_job_seeking_info" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"job_title" text,
	"company_name" text,
	"time_in_role_months" integer,
	"is_new_to_workforce" boolean,
	"gone_at" timestamp with time zone,
	CONSTRAINT "primary_job_seeking_info_pkey" PRIMARY KEY("advertiser_id","application_id")
);
--> statement-breakpoint
CREATE TABLE "intake"."advertisers" (
	"name" text PRIMARY KEY NOT NULL,
	"advertiser_id" bigint,
	"state" text DEFAULT 'active' NOT NULL,
	"halt_kind" text,
	"reason" text,
	"agent_id" text,
	"learned" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"late_ms" bigint,
	"late_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"halted_at" timestamp with time zone,
	CONSTRAINT "advertisers_advertiser_id" UNIQUE("advertiser_id"),
	CONSTRAINT "advertisers_state" CHECK ("intake"."advertisers"."state" IN ('active', 'halted')),
	CONSTRAINT "advertisers_halt_kind" CHECK ("intake"."advertisers"."halt_kind" IN ('refused', 'mismatch')),
	CONSTRAINT "advertisers_halted" CHECK (("intake"."advertisers"."state" = 'halted') = ("intake"."advertisers"."halt_kind" IS NOT NULL))
);
--> statement-breakpoint
CREATE TABLE "intake"."coverage" (
	"advertiser_id" bigint NOT NULL,
	"axis" text NOT NULL,
	"low" bigint NOT NULL,
	"high" bigint,
	"certificate" text NOT NULL,
	"reason" text NOT NULL,
	"as_of" timestamp with time zone NOT NULL,
	"complete_through" timestamp with time zone NOT NULL,
	"sweep_id" bigint NOT NULL,
	CONSTRAINT "coverage_pkey" PRIMARY KEY("advertiser_id","axis","low"),
	CONSTRAINT "coverage_axis" CHECK ("intake"."coverage"."axis" IN ('id', 'date')),
	CONSTRAINT "coverage_certificate" CHECK ("intake"."coverage"."certificate" IN ('proven', 'assumed', 'unproven'))
);
--> statement-breakpoint
CREATE TABLE "intake"."cursors" (
	"advertiser_id" bigint PRIMARY KEY NOT NULL,
	"after_id" bigint NOT NULL,
	"after_date" timestamp with time zone,
	"as_of" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "intake"."events" (
	"advertiser_id" bigint NOT NULL,
	"event_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"type" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	CONSTRAINT "events_pkey" PRIMARY KEY("advertiser_id","event_id"),
	CONSTRAINT "events_type" CHECK ("intake"."events"."type" IN ('application.received', 'application.changed', 'application.ready', 'application.missing', 'application.erased'))
);
--> statement-breakpoint
CREATE TABLE "intake"."leases" (
	"name" text NOT NULL,
	"lane" text NOT NULL,
	"owner" text NOT NULL,
	"epoch" bigint NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"done_at" timestamp with time zone,
	CONSTRAINT "leases_pkey" PRIMARY KEY("name","lane"),
	CONSTRAINT "leases_lane" CHECK ("intake"."leases"."lane" IN ('live', 'backfill'))
);
--> statement-breakpoint
CREATE TABLE "intake"."paces" (
	"source" text PRIMARY KEY NOT NULL,
	"next_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "intake"."quarantine" (
	"advertiser_id" bigint NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"application_id" bigint,
	"reason" text NOT NULL,
	"raw" jsonb,
	"raw_text" text,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"seen" integer DEFAULT 1 NOT NULL,
	"sweep_id" bigint NOT NULL,
	"resolved_at" timestamp with time zone,
	CONSTRAINT "quarantine_pkey" PRIMARY KEY("advertiser_id","fingerprint")
);
--> statement-breakpoint
CREATE TABLE "intake"."ranges" (
	"advertiser_id" bigint NOT NULL,
	"sweep_id" bigint NOT NULL,
	"low" bigint NOT NULL,
	"high" bigint,
	"state" text NOT NULL,
	"evidence" jsonb NOT NULL,
	"opened_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "ranges_pkey" PRIMARY KEY("advertiser_id","sweep_id","low"),
	CONSTRAINT "ranges_state" CHECK ("intake"."ranges"."state" IN ('open', 'closed', 'stuck'))
);
--> statement-breakpoint
CREATE TABLE "intake"."readings" (
	"advertiser_id" bigint NOT NULL,
	"seq" bigint NOT NULL,
	"lane" text NOT NULL,
	"lowest_id" bigint NOT NULL,
	"highest_id" bigint NOT NULL,
	"finished_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "readings_pkey" PRIMARY KEY("advertiser_id","seq")
);
--> statement-breakpoint
CREATE TABLE "intake"."sweeps" (
	"advertiser_id" bigint NOT NULL,
	"sweep_id" bigint NOT NULL,
	"lane" text NOT NULL,
	"purpose" text NOT NULL,
	"axis" text NOT NULL,
	"low" bigint NOT NULL,
	"high" bigint,
	"state" text NOT NULL,
	"certificate" text,
	"reason" text,
	"facts" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"moved_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	"requests" integer DEFAULT 0 NOT NULL,
	"received" bigint DEFAULT 0 NOT NULL,
	"added" bigint DEFAULT 0 NOT NULL,
	"changed" bigint DEFAULT 0 NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "sweeps_pkey" PRIMARY KEY("advertiser_id","sweep_id"),
	CONSTRAINT "sweeps_lane" CHECK ("intake"."sweeps"."lane" IN ('live', 'backfill')),
	CONSTRAINT "sweeps_purpose" CHECK ("intake"."sweeps"."purpose" IN ('live', 'recheck', 'backfill', 'witness')),
	CONSTRAINT "sweeps_axis" CHECK ("intake"."sweeps"."axis" IN ('id', 'date')),
	CONSTRAINT "sweeps_state" CHECK ("intake"."sweeps"."state" IN ('running', 'closed', 'open', 'dropped')),
	CONSTRAINT "sweeps_certificate" CHECK ("intake"."sweeps"."certificate" IN ('proven', 'assumed', 'unproven'))
);
--> statement-breakpoint
CREATE TABLE "intake"."blob_store" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"identity" text NOT NULL,
	"location" text NOT NULL,
	"pinned_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "blob_store_only" CHECK ("intake"."blob_store"."only")
);
--> statement-breakpoint
CREATE TABLE "intake"."blobs" (
	"advertiser_id" bigint NOT NULL,
	"sha256" text NOT NULL,
	"size_bytes" bigint NOT NULL,
	"key" text NOT NULL,
	"state" text NOT NULL,
	"intended_at" timestamp with time zone DEFAULT now() NOT NULL,
	"verified_at" timestamp with time zone,
	"condemned_at" timestamp with time zone,
	"emptied_at" timestamp with time zone,
	"orphaned_at" timestamp with time zone,
	CONSTRAINT "blobs_pkey" PRIMARY KEY("advertiser_id","sha256"),
	CONSTRAINT "blobs_state" CHECK ("intake"."blobs"."state" IN ('writing', 'stored', 'damaged', 'condemned')),
	CONSTRAINT "blobs_condemned" CHECK (("intake"."blobs"."state" = 'condemned') = ("intake"."blobs"."condemned_at" IS NOT NULL))
);
--> statement-breakpoint
CREATE TABLE "intake"."downloads" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"kind" text NOT NULL,
	"priority" smallint NOT NULL,
	"due_at" timestamp with time zone DEFAULT now() NOT NULL,
	"attempts" smallint DEFAULT 0 NOT NULL,
	"lapses" smallint DEFAULT 0 NOT NULL,
	"lease_token" uuid,
	"trouble" text,
	"trouble_kind" text,
	CONSTRAINT "downloads_pkey" PRIMARY KEY("advertiser_id","application_id","kind"),
	CONSTRAINT "downloads_priority" CHECK ("intake"."downloads"."priority" IN (0, 1, 2))
);
--> statement-breakpoint
CREATE TABLE "intake"."hash_trust" (
	"advertiser_id" bigint PRIMARY KEY NOT NULL,
	"agreed" integer DEFAULT 0 NOT NULL,
	"contradicted_at" timestamp with time zone,
	"unchanged" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "intake"."screen_answers" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"screen_no" integer NOT NULL,
	"question_no" integer NOT NULL,
	"answer_no" integer NOT NULL,
	"answer_id" text,
	"text" text NOT NULL,
	"selected" boolean NOT NULL,
	CONSTRAINT "screen_answers_pkey" PRIMARY KEY("advertiser_id","application_id","screen_no","question_no","answer_no")
);
--> statement-breakpoint
CREATE TABLE "intake"."screen_questions" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"screen_no" integer NOT NULL,
	"question_no" integer NOT NULL,
	"question_id" text,
	"type" text,
	"text" text,
	CONSTRAINT "screen_questions_pkey" PRIMARY KEY("advertiser_id","application_id","screen_no","question_no")
);
--> statement-breakpoint
CREATE TABLE "intake"."screens" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"screen_no" integer NOT NULL,
	"screen_id" text,
	"name" text,
	"outcome" text NOT NULL,
	"notes" jsonb,
	"sha256" text NOT NULL,
	"parser_version" integer NOT NULL,
	CONSTRAINT "screens_pkey" PRIMARY KEY("advertiser_id","application_id","screen_no"),
	CONSTRAINT "screens_outcome" CHECK ("intake"."screens"."outcome" IN ('pass', 'fail', 'unknown'))
);
--> statement-breakpoint
ALTER TABLE "intake"."attachment_versions" ADD CONSTRAINT "attachment_versions_attachment" FOREIGN KEY ("advertiser_id","application_id","kind") REFERENCES "intake"."attachments"("advertiser_id","application_id","kind") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."attachments" ADD CONSTRAINT "attachments_application" FOREIGN KEY ("advertiser_id","application_id") REFERENCES "intake"."applications"("advertiser_id","application_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."primary_job_seeking_info" ADD CONSTRAINT "primary_job_seeking_info_application" FOREIGN KEY ("advertiser_id","application_id") REFERENCES "intake"."applications"("advertiser_id","application_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."ranges" ADD CONSTRAINT "ranges_sweep" FOREIGN KEY ("advertiser_id","sweep_id") REFERENCES "intake"."sweeps"("advertiser_id","sweep_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."downloads" ADD CONSTRAINT "downloads_attachment" FOREIGN KEY ("advertiser_id","application_id","kind") REFERENCES "intake"."attachments"("advertiser_id","application_id","kind") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."screen_answers" ADD CONSTRAINT "screen_answers_question" FOREIGN KEY ("advertiser_id","application_id","screen_no","question_no") REFERENCES "intake"."screen_questions"("advertiser_id","application_id","screen_no","question_no") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."screen_questions" ADD CONSTRAINT "screen_questions_screen" FOREIGN KEY ("advertiser_id","application_id","screen_no") REFERENCES "intake"."screens"("advertiser_id","application_id","screen_no") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."screens" ADD CONSTRAINT "screens_application" FOREIGN KEY ("advertiser_id","application_id") REFERENCES "intake"."applications"("advertiser_id","application_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "applications_submitted" ON "intake"."applications" USING btree ("advertiser_id","submitted_at");--> statement-breakpoint
CREATE INDEX "applications_job" ON "intake"."applications" USING btree ("advertiser_id","job_reference","submitted_at");--> statement-breakpoint
CREATE INDEX "applications_job_seeker" ON "intake"."applications" USING btree ("advertiser_id","job_seeker_id");--> statement-breakpoint
CREATE INDEX "applications_first_seen" ON "intake"."applications" USING btree ("advertiser_id","first_seen_at");--> statement-breakpoint
CREATE INDEX "attachment_versions_blob" ON "intake"."attachment_versions" USING btree ("advertiser_id","sha256") WHERE "intake"."attachment_versions"."sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attachments_blob" ON "intake"."attachments" USING btree ("advertiser_id","sha256") WHERE "intake"."attachments"."sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attachments_hash" ON "intake"."attachments" USING btree ("advertiser_id","source_hash") WHERE "intake"."attachments"."state" = 'stored' AND "intake"."attachments"."source_hash" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "sweeps_started" ON "intake"."sweeps" USING btree ("advertiser_id","started_at");--> statement-breakpoint
CREATE INDEX "blobs_condemned" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."state" = 'condemned' AND "intake"."blobs"."emptied_at" IS NULL;--> statement-breakpoint
CREATE INDEX "blobs_orphaned" ON "intake"."blobs" USING btree ("advertiser_id","orphaned_at") WHERE "intake"."blobs"."orphaned_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "downloads_due" ON "intake"."downloads" USING btree ("advertiser_id","priority","due_at");