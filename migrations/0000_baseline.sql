-- The schema of Intake: tables as drizzle-kit writes them from src/store/schema, then what it cannot express, then views, then comments.
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
	"facts_hash" "bytea",
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
	"infected_at" timestamp with time zone,
	"deleted_at" timestamp with time zone,
	"orphaned_at" timestamp with time zone,
	"delete_token" uuid,
	"delete_until" timestamp with time zone,
	CONSTRAINT "blobs_pkey" PRIMARY KEY("advertiser_id","sha256"),
	CONSTRAINT "blobs_state" CHECK ("intake"."blobs"."state" IN ('writing', 'stored', 'damaged', 'infected', 'deleting')),
	CONSTRAINT "blobs_deleting" CHECK ("intake"."blobs"."state" <> 'deleting' OR "intake"."blobs"."delete_token" IS NOT NULL),
	CONSTRAINT "blobs_infected" CHECK (("intake"."blobs"."state" = 'infected') = ("intake"."blobs"."infected_at" IS NOT NULL))
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
	"leased_until" timestamp with time zone,
	"sha256" text,
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
CREATE TABLE "intake"."oauth_states" (
	"advertiser_id" bigint NOT NULL,
	"state_hash" "bytea" NOT NULL,
	"binding_hash" "bytea" NOT NULL,
	"prefill_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone,
	CONSTRAINT "oauth_states_pkey" PRIMARY KEY("advertiser_id","state_hash")
);
--> statement-breakpoint
CREATE TABLE "intake"."prefill_days" (
	"advertiser_id" bigint NOT NULL,
	"day" date NOT NULL,
	"started" bigint DEFAULT 0 NOT NULL,
	"authorized" bigint DEFAULT 0 NOT NULL,
	"denied" bigint DEFAULT 0 NOT NULL,
	"failed" bigint DEFAULT 0 NOT NULL,
	"expired" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "prefill_days_pkey" PRIMARY KEY("advertiser_id","day")
);
--> statement-breakpoint
CREATE TABLE "intake"."prefills" (
	"advertiser_id" bigint NOT NULL,
	"prefill_id" uuid NOT NULL,
	"outcome" text DEFAULT 'started' NOT NULL,
	"reason" text,
	"form_url" text NOT NULL,
	"return_url" text NOT NULL,
	"position_title" text,
	"position_uri" text,
	"country_code" text,
	"postal_code" text,
	"profile" jsonb,
	"profile_text" text,
	"notes" jsonb,
	"first_name" text,
	"last_name" text,
	"email" text,
	"phone" text,
	"person_key" text,
	"person_keys" text[],
	"resume_sha256" text,
	"resume_size_bytes" bigint,
	"resume_content_type" text,
	"resume_file_name" text,
	"resume_reason" text,
	"handle_hash" "bytea",
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"authorized_at" timestamp with time zone,
	"prefilled_at" timestamp with time zone,
	"expires_at" timestamp with time zone,
	"resume_put_until" timestamp with time zone,
	"resume_stored_at" timestamp with time zone,
	"redeemed_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	CONSTRAINT "prefills_pkey" PRIMARY KEY("advertiser_id","prefill_id"),
	CONSTRAINT "prefills_handle" UNIQUE("advertiser_id","handle_hash"),
	CONSTRAINT "prefills_outcome" CHECK ("intake"."prefills"."outcome" IN ('started', 'denied', 'expired', 'failed', 'prefilled', 'redeemed', 'lapsed', 'erased')),
	CONSTRAINT "prefills_kept" CHECK ("intake"."prefills"."outcome" IN ('prefilled', 'redeemed') = ("intake"."prefills"."profile" IS NOT NULL)),
	CONSTRAINT "prefills_resume" CHECK ("intake"."prefills"."resume_stored_at" IS NULL OR "intake"."prefills"."resume_sha256" IS NOT NULL OR "intake"."prefills"."outcome" IN ('lapsed', 'erased'))
);
--> statement-breakpoint
CREATE TABLE "intake"."audit_log" (
	"advertiser_id" bigint NOT NULL,
	"audit_id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "intake"."audit_log_audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"action" text NOT NULL,
	"application_id" bigint,
	"by" text NOT NULL,
	"facts" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "audit_log_pkey" PRIMARY KEY("advertiser_id","audit_id")
);
--> statement-breakpoint
CREATE TABLE "intake"."erasure_jobs" (
	"advertiser_id" bigint NOT NULL,
	"job_id" uuid NOT NULL,
	"sought_by" text NOT NULL,
	"sought" "bytea" NOT NULL,
	"requested_at" timestamp with time zone DEFAULT now() NOT NULL,
	"requested_by" text NOT NULL,
	"step" text NOT NULL,
	"check_again_at" timestamp with time zone NOT NULL,
	"application_ids" bigint[],
	"hashes" text[],
	"counts" jsonb NOT NULL,
	"checks" integer DEFAULT 0 NOT NULL,
	"trouble" text,
	"closed_at" timestamp with time zone,
	CONSTRAINT "erasure_jobs_pkey" PRIMARY KEY("advertiser_id","job_id"),
	CONSTRAINT "erasure_jobs_sought_by" CHECK ("intake"."erasure_jobs"."sought_by" IN ('application', 'jobseeker', 'address', 'retention')),
	CONSTRAINT "erasure_jobs_step" CHECK ("intake"."erasure_jobs"."step" IN ('bytes', 'waiting', 'closed')),
	CONSTRAINT "erasure_jobs_closed" CHECK (("intake"."erasure_jobs"."step" = 'closed') = ("intake"."erasure_jobs"."closed_at" IS NOT NULL)),
	CONSTRAINT "erasure_jobs_forgotten" CHECK ("intake"."erasure_jobs"."step" <> 'closed' OR ("intake"."erasure_jobs"."application_ids" IS NULL AND "intake"."erasure_jobs"."hashes" IS NULL))
);
--> statement-breakpoint
CREATE TABLE "intake"."erasures" (
	"advertiser_id" bigint NOT NULL,
	"tombstone" "bytea" NOT NULL,
	"job_id" uuid NOT NULL,
	"erased_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "erasures_pkey" PRIMARY KEY("advertiser_id","tombstone")
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
	"retention_due" bigint,
	"erased_through" bigint,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"halted_at" timestamp with time zone,
	"throttled_until" timestamp with time zone,
	"throttled_ms" bigint,
	"answered_url" text,
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
	"risk" text NOT NULL,
	"reason" text NOT NULL,
	"as_of" timestamp with time zone NOT NULL,
	"complete_through" timestamp with time zone NOT NULL,
	"sweep_id" bigint NOT NULL,
	CONSTRAINT "coverage_pkey" PRIMARY KEY("advertiser_id","axis","low"),
	CONSTRAINT "coverage_axis" CHECK ("intake"."coverage"."axis" IN ('id', 'date')),
	CONSTRAINT "coverage_certificate" CHECK ("intake"."coverage"."certificate" IN ('proven', 'assumed', 'unproven')),
	CONSTRAINT "coverage_risk" CHECK ("intake"."coverage"."risk" IN ('none', 'harmless', 'doubt'))
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
CREATE TABLE "intake"."rate_limits" (
	"source" text PRIMARY KEY NOT NULL,
	"next_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "intake"."recent_pages" (
	"advertiser_id" bigint NOT NULL,
	"seq" bigint NOT NULL,
	"lane" text NOT NULL,
	"lowest_id" bigint NOT NULL,
	"highest_id" bigint NOT NULL,
	"finished_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "recent_pages_pkey" PRIMARY KEY("advertiser_id","seq")
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
	"risk" text,
	"reason" text,
	"facts" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"last_progress_at" timestamp with time zone NOT NULL,
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
	CONSTRAINT "sweeps_certificate" CHECK ("intake"."sweeps"."certificate" IN ('proven', 'assumed', 'unproven')),
	CONSTRAINT "sweeps_risk" CHECK ("intake"."sweeps"."risk" IN ('none', 'harmless', 'doubt'))
);
--> statement-breakpoint
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
ALTER TABLE "intake"."attachment_versions" ADD CONSTRAINT "attachment_versions_attachment" FOREIGN KEY ("advertiser_id","application_id","kind") REFERENCES "intake"."attachments"("advertiser_id","application_id","kind") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."attachments" ADD CONSTRAINT "attachments_application" FOREIGN KEY ("advertiser_id","application_id") REFERENCES "intake"."applications"("advertiser_id","application_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."primary_job_seeking_info" ADD CONSTRAINT "primary_job_seeking_info_application" FOREIGN KEY ("advertiser_id","application_id") REFERENCES "intake"."applications"("advertiser_id","application_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."downloads" ADD CONSTRAINT "downloads_attachment" FOREIGN KEY ("advertiser_id","application_id","kind") REFERENCES "intake"."attachments"("advertiser_id","application_id","kind") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."oauth_states" ADD CONSTRAINT "oauth_states_prefill" FOREIGN KEY ("advertiser_id","prefill_id") REFERENCES "intake"."prefills"("advertiser_id","prefill_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."screen_answers" ADD CONSTRAINT "screen_answers_question" FOREIGN KEY ("advertiser_id","application_id","screen_no","question_no") REFERENCES "intake"."screen_questions"("advertiser_id","application_id","screen_no","question_no") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."screen_questions" ADD CONSTRAINT "screen_questions_screen" FOREIGN KEY ("advertiser_id","application_id","screen_no") REFERENCES "intake"."screens"("advertiser_id","application_id","screen_no") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."screens" ADD CONSTRAINT "screens_application" FOREIGN KEY ("advertiser_id","application_id") REFERENCES "intake"."applications"("advertiser_id","application_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."ranges" ADD CONSTRAINT "ranges_sweep" FOREIGN KEY ("advertiser_id","sweep_id") REFERENCES "intake"."sweeps"("advertiser_id","sweep_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "applications_submitted" ON "intake"."applications" USING btree ("advertiser_id","submitted_at");--> statement-breakpoint
CREATE INDEX "applications_job_seeker" ON "intake"."applications" USING btree ("advertiser_id","job_seeker_id");--> statement-breakpoint
CREATE INDEX "applications_first_seen" ON "intake"."applications" USING btree ("advertiser_id","first_seen_at");--> statement-breakpoint
CREATE INDEX "attachment_versions_blob" ON "intake"."attachment_versions" USING btree ("advertiser_id","sha256") WHERE "intake"."attachment_versions"."sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attachments_blob" ON "intake"."attachments" USING btree ("advertiser_id","sha256") WHERE "intake"."attachments"."sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attachments_hash" ON "intake"."attachments" USING btree ("advertiser_id",left("source_hash", 100)) WHERE "intake"."attachments"."state" = 'stored' AND "intake"."attachments"."source_hash" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "blobs_to_delete" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."state" = 'infected' AND ("intake"."blobs"."deleted_at" IS NULL OR "intake"."blobs"."deleted_at" - "intake"."blobs"."intended_at" < interval '10 minutes') OR "intake"."blobs"."state" = 'deleting';--> statement-breakpoint
CREATE INDEX "blobs_orphaned" ON "intake"."blobs" USING btree ("advertiser_id","orphaned_at") WHERE "intake"."blobs"."orphaned_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "downloads_due" ON "intake"."downloads" USING btree ("advertiser_id","priority","due_at");--> statement-breakpoint
CREATE INDEX "downloads_blob" ON "intake"."downloads" USING btree ("advertiser_id","sha256") WHERE "intake"."downloads"."sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "oauth_states_expires" ON "intake"."oauth_states" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "prefills_created" ON "intake"."prefills" USING btree ("advertiser_id","created_at");--> statement-breakpoint
CREATE INDEX "prefills_person" ON "intake"."prefills" USING btree ("advertiser_id","person_key");--> statement-breakpoint
CREATE INDEX "prefills_open" ON "intake"."prefills" USING btree ("created_at") WHERE "intake"."prefills"."outcome" IN ('started', 'prefilled');--> statement-breakpoint
CREATE INDEX "prefills_ended" ON "intake"."prefills" USING btree ("ended_at") WHERE "intake"."prefills"."outcome" IN ('denied', 'expired', 'failed');--> statement-breakpoint
CREATE INDEX "prefills_leaving" ON "intake"."prefills" USING btree ("created_at") WHERE "intake"."prefills"."outcome" IN ('lapsed', 'erased') AND "intake"."prefills"."resume_sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "audit_log_application" ON "intake"."audit_log" USING btree ("advertiser_id","application_id") WHERE "intake"."audit_log"."application_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "erasure_jobs_open" ON "intake"."erasure_jobs" USING btree ("advertiser_id","requested_at") WHERE "intake"."erasure_jobs"."closed_at" IS NULL;--> statement-breakpoint
CREATE INDEX "sweeps_started" ON "intake"."sweeps" USING btree ("advertiser_id","started_at");--> statement-breakpoint
-- An older version that meets a newer schema can say which version to use.
ALTER TABLE intake.migrations ADD COLUMN version text;
--> statement-breakpoint

-- Every poll updates one row in each of these tables, and every claim one row of the queue. Room on their pages keeps the new version
-- beside the old one (HOT): no index entry, half of the WAL (measured with 1,000 advertisers: 599 bytes per idle poll without).
ALTER TABLE intake.leases SET (fillfactor = 40);
ALTER TABLE intake.cursors SET (fillfactor = 40);
ALTER TABLE intake.rate_limits SET (fillfactor = 40);
ALTER TABLE intake.downloads SET (fillfactor = 50);
--> statement-breakpoint

-- ANALYZE keeps sample values of a column for the planner, and an erasure does not reach them. Columns that hold what a person wrote or is
-- known by, in clear or as a hash, get no statistics. No plan needs them.
ALTER TABLE intake.applications
  ALTER COLUMN email SET STATISTICS 0,
  ALTER COLUMN first_name SET STATISTICS 0,
  ALTER COLUMN last_name SET STATISTICS 0,
  ALTER COLUMN phone SET STATISTICS 0,
  ALTER COLUMN job_seeker_id SET STATISTICS 0,
  ALTER COLUMN raw SET STATISTICS 0,
  ALTER COLUMN raw_text SET STATISTICS 0,
  ALTER COLUMN person_key SET STATISTICS 0,
  ALTER COLUMN content_hash SET STATISTICS 0,
  ALTER COLUMN facts_hash SET STATISTICS 0;
ALTER TABLE intake.attachment_versions
  ALTER COLUMN content_type SET STATISTICS 0,
  ALTER COLUMN file_name SET STATISTICS 0;
ALTER TABLE intake.attachments
  ALTER COLUMN href SET STATISTICS 0,
  ALTER COLUMN content_type SET STATISTICS 0,
  ALTER COLUMN file_name SET STATISTICS 0;
ALTER TABLE intake.erasure_jobs
  ALTER COLUMN sought SET STATISTICS 0,
  ALTER COLUMN application_ids SET STATISTICS 0,
  ALTER COLUMN hashes SET STATISTICS 0;
ALTER TABLE intake.oauth_states
  ALTER COLUMN state_hash SET STATISTICS 0,
  ALTER COLUMN binding_hash SET STATISTICS 0;
ALTER TABLE intake.prefills
  ALTER COLUMN form_url SET STATISTICS 0,
  ALTER COLUMN return_url SET STATISTICS 0,
  ALTER COLUMN position_title SET STATISTICS 0,
  ALTER COLUMN position_uri SET STATISTICS 0,
  ALTER COLUMN postal_code SET STATISTICS 0,
  ALTER COLUMN profile SET STATISTICS 0,
  ALTER COLUMN profile_text SET STATISTICS 0,
  ALTER COLUMN first_name SET STATISTICS 0,
  ALTER COLUMN last_name SET STATISTICS 0,
  ALTER COLUMN email SET STATISTICS 0,
  ALTER COLUMN phone SET STATISTICS 0,
  ALTER COLUMN person_key SET STATISTICS 0,
  ALTER COLUMN resume_sha256 SET STATISTICS 0,
  ALTER COLUMN resume_content_type SET STATISTICS 0,
  ALTER COLUMN resume_file_name SET STATISTICS 0,
  ALTER COLUMN handle_hash SET STATISTICS 0,
  ALTER COLUMN person_keys SET STATISTICS 0;
ALTER TABLE intake.primary_job_seeking_info
  ALTER COLUMN job_title SET STATISTICS 0,
  ALTER COLUMN company_name SET STATISTICS 0;
ALTER TABLE intake.quarantine
  ALTER COLUMN fingerprint SET STATISTICS 0,
  ALTER COLUMN raw SET STATISTICS 0,
  ALTER COLUMN raw_text SET STATISTICS 0;
ALTER TABLE intake.screen_answers
  ALTER COLUMN text SET STATISTICS 0;
--> statement-breakpoint
CREATE SCHEMA IF NOT EXISTS intake_analytics;
--> statement-breakpoint
-- The source writes times with an offset, in Australian Eastern time: every time of the source also stands here as its own local time.
CREATE FUNCTION intake.local_time(at timestamptz, source_offset text) RETURNS timestamp
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN at AT TIME ZONE make_interval(
  hours => left(coalesce(source_offset, '+10:00'), 3)::int,
  mins => (left(coalesce(source_offset, '+10:00'), 1) || right(coalesce(source_offset, '+10:00'), 2))::int);
--> statement-breakpoint
-- Days, people and problems are what views are filtered by; the last index holds the few attachments that went wrong.
CREATE INDEX applications_local_day ON intake.applications (advertiser_id, (intake.local_time(submitted_at, source_offset)::date));
CREATE INDEX applications_person ON intake.applications (advertiser_id, person_key);
CREATE INDEX attachments_problems ON intake.attachments (advertiser_id, state) WHERE state IN ('infected', 'missing', 'rejected', 'given_up');
-- Counting by job reads this index alone: a tenth of the pages of the table, whose rows carry the source's whole object.
CREATE INDEX applications_job ON intake.applications (advertiser_id, job_reference, submitted_at) INCLUDE (application_id) WHERE erased_at IS NULL;
--> statement-breakpoint
-- Views.
CREATE VIEW intake.gaps AS
SELECT r.advertiser_id, r.sweep_id, s.axis, r.low, r.high, r.state, r.opened_at
FROM intake.ranges r JOIN intake.sweeps s USING (advertiser_id, sweep_id)
WHERE r.state <> 'closed' AND s.state <> 'dropped';
--> statement-breakpoint
-- What is open is reckoned in one place: `intake backfill --gaps` reads these ranges, and completeness counts them.
CREATE VIEW intake.open_ranges AS
SELECT v.name AS advertiser, v.advertiser_id, lower(r) AS low, upper(r) - 1 AS high
FROM intake.advertisers v
-- Everything, less what is covered, plus the gaps of sweeps that ended. Upper ends are exclusive in ranges.
CROSS JOIN LATERAL unnest(int8multirange(int8range(1, NULL))
  - (SELECT coalesce(range_agg(int8range(k.low, k.high + 1)), '{}') FROM intake.coverage k
     WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id' AND k.certificate <> 'unproven')
  + (SELECT coalesce(range_agg(int8range(g.low, g.high + 1)), '{}') FROM intake.gaps g
     JOIN intake.sweeps s ON s.advertiser_id = g.advertiser_id AND s.sweep_id = g.sweep_id
     WHERE g.advertiser_id = v.advertiser_id AND g.axis = 'id' AND s.state = 'open')) AS r;
--> statement-breakpoint
-- What analysts read. Rules: nothing a person typed or is called by stands outside the two views that say so in their comment
-- (applications, screening_free_text); columns are only ever added; erased people are in none of them.
CREATE VIEW intake_analytics.completeness AS
SELECT v.name AS advertiser, v.advertiser_id,
  CASE WHEN open.ranges > 0 THEN 'unproven' ELSE coalesce(weakest.certificate, 'unproven') END AS certificate,
  CASE WHEN weakest.certificate = 'unproven' THEN weakest.reason
       WHEN weakest.certificate IS NULL THEN 'nothing was read to its end yet'
       WHEN open.ranges > 0 THEN 'some ids were never read to their end' ELSE weakest.reason END AS reason,
  CASE WHEN open.ranges = 0 THEN weakest.complete_through END AS complete_through,
  weakest.as_of, open.ranges AS open_ranges, c.as_of AS polled_at, v.late_ms AS lateness_ms,
  'The source applies both id filters before it cuts a page off; what fits into a page, by count or by bytes, does not shrink below half within one sweep; every answer comes from one current list (no cache, no stale replica, no default window, no grouping by person).' AS assumptions,
  CASE WHEN open.ranges > 0 THEN 'doubt' ELSE coalesce(weakest.risk, 'doubt') END AS risk
FROM intake.advertisers v
LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
LEFT JOIN LATERAL (
  SELECT k.certificate, k.risk, k.reason, min(k.as_of) OVER () AS as_of, min(k.complete_through) OVER () AS complete_through
  FROM intake.coverage k WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id'
  ORDER BY array_position(ARRAY['unproven', 'assumed', 'proven'], k.certificate),
    array_position(ARRAY['doubt', 'harmless', 'none'], k.risk), k.as_of LIMIT 1) AS weakest ON true
CROSS JOIN LATERAL (
  SELECT count(*)::int AS ranges FROM intake.open_ranges o WHERE o.advertiser = v.name) AS open;
--> statement-breakpoint
CREATE VIEW intake_analytics.applications AS
SELECT a.advertiser_id, a.application_id, a.person_key, a.job_reference,
  a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, a.source_offset,
  a.email, a.first_name, a.last_name, a.phone, a.job_seeker_id,
  i.job_title AS current_job_title, i.company_name AS current_company, i.time_in_role_months, i.is_new_to_workforce,
  (SELECT CASE WHEN bool_or(s.outcome = 'fail') THEN 'fail' WHEN bool_or(s.outcome = 'unknown') THEN 'unknown' ELSE max(s.outcome) END
   FROM intake.screens s WHERE s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id) AS screening_outcome,
  a.first_seen_at, a.changed_at, a.ready_at, a.missing_since, a.notes
FROM intake.applications a
LEFT JOIN intake.primary_job_seeking_info i
  ON i.advertiser_id = a.advertiser_id AND i.application_id = a.application_id AND i.gone_at IS NULL
WHERE a.erased_at IS NULL;
--> statement-breakpoint
CREATE VIEW intake_analytics.applications_anonymous AS
SELECT a.advertiser_id, a.application_id, a.person_key, a.job_reference,
  a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local, a.source_offset,
  i.time_in_role_months, i.is_new_to_workforce,
  (SELECT CASE WHEN bool_or(s.outcome = 'fail') THEN 'fail' WHEN bool_or(s.outcome = 'unknown') THEN 'unknown' ELSE max(s.outcome) END
   FROM intake.screens s WHERE s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id) AS screening_outcome,
  a.first_seen_at, a.changed_at, a.ready_at, a.missing_since
FROM intake.applications a
LEFT JOIN intake.primary_job_seeking_info i
  ON i.advertiser_id = a.advertiser_id AND i.application_id = a.application_id AND i.gone_at IS NULL
WHERE a.erased_at IS NULL;
--> statement-breakpoint
-- Screens count from 1, so an application without a screen, or its first screen, counts the application once, whatever it joins to.
CREATE VIEW intake_analytics.applications_daily AS
SELECT a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date AS day, a.job_reference,
  count(*) FILTER (WHERE coalesce(s.screen_no, 1) = 1) AS applications,
  count(DISTINCT a.person_key) AS people,
  count(s.screen_no) AS screens,
  count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed,
  count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
FROM intake.applications a
LEFT JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id
WHERE a.erased_at IS NULL
GROUP BY a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date, a.job_reference;
--> statement-breakpoint
-- The clock of a job's first and last application is that job's own: another job's of the same moment may have another offset.
CREATE VIEW intake_analytics.jobs AS
SELECT j.advertiser_id, j.job_reference, j.applications,
  j.first_application_at, j.last_application_at,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.first_application_at AND a.job_reference IS NOT DISTINCT FROM j.job_reference LIMIT 1) AS first_application_local,
  (SELECT intake.local_time(a.submitted_at, a.source_offset) FROM intake.applications a
   WHERE a.advertiser_id = j.advertiser_id AND a.submitted_at = j.last_application_at AND a.job_reference IS NOT DISTINCT FROM j.job_reference LIMIT 1) AS last_application_local,
  j.applications_last_7_days, j.applications_28_days_before,
  s.screens, s.screens_passed, s.screens_failed,
  round(s.screens_passed::numeric / nullif(s.screens_passed + s.screens_failed, 0), 4) AS pass_rate,
  j.applications_last_7_days = 0 AND j.applications_28_days_before >= 4 AS dried_up, j.as_of
FROM (
  SELECT a.advertiser_id, a.job_reference, r.as_of, count(*) AS applications,
    min(a.submitted_at) AS first_application_at, max(a.submitted_at) AS last_application_at,
    count(*) FILTER (WHERE a.submitted_at > r.as_of - interval '7 days') AS applications_last_7_days,
    count(*) FILTER (WHERE a.submitted_at > r.as_of - interval '35 days'
      AND a.submitted_at <= r.as_of - interval '7 days') AS applications_28_days_before
  FROM intake.applications a
  JOIN (
    SELECT v.advertiser_id, coalesce(greatest(c.as_of, k.as_of), now()) AS as_of
    FROM intake.advertisers v
    LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
    LEFT JOIN (SELECT advertiser_id, max(as_of) AS as_of FROM intake.coverage GROUP BY advertiser_id) AS k
      ON k.advertiser_id = v.advertiser_id
  ) AS r ON r.advertiser_id = a.advertiser_id
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, a.job_reference, r.as_of
) AS j
LEFT JOIN (
  SELECT a.advertiser_id, a.job_reference, count(*) AS screens,
    count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed, count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
  FROM intake.screens s
  JOIN intake.applications a ON a.advertiser_id = s.advertiser_id AND a.application_id = s.application_id
  WHERE a.erased_at IS NULL
  GROUP BY a.advertiser_id, a.job_reference
) AS s ON s.advertiser_id = j.advertiser_id AND s.job_reference = j.job_reference;
--> statement-breakpoint
-- An erased application has no person_key: it needs no further condition, and counting reads the index alone.
CREATE VIEW intake_analytics.job_seekers AS
SELECT p.advertiser_id, p.person_key, p.applications, p.jobs,
  p.first_application_at, p.last_application_at, p.first_application_local, p.last_application_local,
  coalesce(s.screens, 0) AS screens, coalesce(s.screens_passed, 0) AS screens_passed, coalesce(s.screens_failed, 0) AS screens_failed
FROM (
  SELECT a.advertiser_id, a.person_key, count(*) AS applications, count(DISTINCT a.job_reference) AS jobs,
    min(a.submitted_at) AS first_application_at, max(a.submitted_at) AS last_application_at,
    min(intake.local_time(a.submitted_at, a.source_offset)) AS first_application_local,
    max(intake.local_time(a.submitted_at, a.source_offset)) AS last_application_local
  FROM intake.applications a
  WHERE a.person_key IS NOT NULL
  GROUP BY a.advertiser_id, a.person_key
) AS p
LEFT JOIN (
  SELECT a.advertiser_id, a.person_key, count(*) AS screens,
    count(*) FILTER (WHERE s.outcome = 'pass') AS screens_passed, count(*) FILTER (WHERE s.outcome = 'fail') AS screens_failed
  FROM intake.screens s
  JOIN intake.applications a ON a.advertiser_id = s.advertiser_id AND a.application_id = s.application_id
  WHERE a.person_key IS NOT NULL
  GROUP BY a.advertiser_id, a.person_key
) AS s ON s.advertiser_id = p.advertiser_id AND s.person_key = p.person_key;
--> statement-breakpoint
CREATE VIEW intake_analytics.screening_outcomes AS
SELECT s.advertiser_id, s.application_id, s.screen_no, s.screen_id, s.name AS screen_name, s.outcome,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local
FROM intake.screens s
JOIN intake.applications a ON a.advertiser_id = s.advertiser_id AND a.application_id = s.application_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
-- Offered answers are the advertiser's words. What a person typed is not shown here: Text, URLQuestion and types we do not know.
CREATE VIEW intake_analytics.screening_answers AS
SELECT w.advertiser_id, w.application_id, w.screen_no, w.question_no, w.answer_no,
  s.screen_id, s.name AS screen_name, s.outcome, q.question_id, q.type AS question_type, q.text AS question_text, w.answer_id,
  CASE WHEN q.type IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False') THEN w.text END AS answer_text,
  w.selected, a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local
FROM intake.screen_answers w
JOIN intake.screen_questions q ON q.advertiser_id = w.advertiser_id AND q.application_id = w.application_id
  AND q.screen_no = w.screen_no AND q.question_no = w.question_no
JOIN intake.screens s ON s.advertiser_id = w.advertiser_id AND s.application_id = w.application_id AND s.screen_no = w.screen_no
JOIN intake.applications a ON a.advertiser_id = w.advertiser_id AND a.application_id = w.application_id
WHERE a.erased_at IS NULL;
--> statement-breakpoint
CREATE VIEW intake_analytics.screening_free_text AS
SELECT w.advertiser_id, w.application_id, w.screen_no, w.question_no, w.answer_no,
  s.screen_id, s.name AS screen_name, s.outcome, q.question_id, q.type AS question_type, q.text AS question_text, w.text AS answer_text,
  w.selected, a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local
FROM intake.screen_answers w
JOIN intake.screen_questions q ON q.advertiser_id = w.advertiser_id AND q.application_id = w.application_id
  AND q.screen_no = w.screen_no AND q.question_no = w.question_no
JOIN intake.screens s ON s.advertiser_id = w.advertiser_id AND s.application_id = w.application_id AND s.screen_no = w.screen_no
JOIN intake.applications a ON a.advertiser_id = w.advertiser_id AND a.application_id = w.application_id
WHERE a.erased_at IS NULL
  AND (q.type IS NULL OR q.type NOT IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False'));
--> statement-breakpoint
CREATE VIEW intake_analytics.answer_distribution AS
SELECT d.advertiser_id, d.job_reference, d.screen_id, d.question_id, d.question_type, d.question_text,
  dense_rank() OVER (PARTITION BY d.advertiser_id, d.job_reference, d.screen_id, coalesce(d.question_id, d.question_text)
    ORDER BY d.asked_since, d.question_text) AS wording,
  d.answer_text, d.offered, d.chosen, round(d.chosen::numeric / d.offered, 4) AS share,
  round(d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS pass_rate_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0), 4) AS pass_rate_not_chosen,
  round(d.other_passed::numeric / nullif(d.other_judged, 0) - d.chosen_passed::numeric / nullif(d.chosen_judged, 0), 4) AS knock_out_power,
  d.first_offered_at, d.last_offered_at, d.first_offered_local, d.last_offered_local
FROM (
  SELECT a.advertiser_id, a.job_reference, s.screen_id, q.question_id, q.type AS question_type, q.text AS question_text,
    w.text AS answer_text, count(*) AS offered, count(*) FILTER (WHERE w.selected) AS chosen,
    count(*) FILTER (WHERE w.selected AND s.outcome = 'pass') AS chosen_passed,
    count(*) FILTER (WHERE w.selected AND s.outcome <> 'unknown') AS chosen_judged,
    count(*) FILTER (WHERE NOT w.selected AND s.outcome = 'pass') AS other_passed,
    count(*) FILTER (WHERE NOT w.selected AND s.outcome <> 'unknown') AS other_judged,
    min(a.submitted_at) AS first_offered_at, max(a.submitted_at) AS last_offered_at,
    min(intake.local_time(a.submitted_at, a.source_offset)) AS first_offered_local,
    max(intake.local_time(a.submitted_at, a.source_offset)) AS last_offered_local,
    min(min(a.submitted_at)) OVER (PARTITION BY a.advertiser_id, a.job_reference, s.screen_id, q.question_id, q.text) AS asked_since
  FROM intake.applications a
  JOIN intake.screens s ON s.advertiser_id = a.advertiser_id AND s.application_id = a.application_id
  JOIN intake.screen_questions q ON q.advertiser_id = s.advertiser_id AND q.application_id = s.application_id
    AND q.screen_no = s.screen_no
  JOIN intake.screen_answers w ON w.advertiser_id = q.advertiser_id AND w.application_id = q.application_id
    AND w.screen_no = q.screen_no AND w.question_no = q.question_no
  WHERE a.erased_at IS NULL AND q.type IN ('MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'True/False')
  GROUP BY a.advertiser_id, a.job_reference, s.screen_id, q.question_id, q.type, q.text, w.text
) AS d;
--> statement-breakpoint
-- A declared type may carry the name of the file as a parameter (application/pdf; name="..."): analysts see the type alone.
CREATE VIEW intake_analytics.attachments AS
SELECT f.advertiser_id, f.application_id, f.kind, f.version, f.state, f.reason, f.size_bytes, f.has_virus,
  f.uploaded_at, intake.local_time(f.uploaded_at, a.source_offset) AS uploaded_local,
  f.sha256, btrim(split_part(f.content_type, ';', 1)) AS content_type, f.detected_type, f.stored_at, f.gone_at,
  a.person_key, a.job_reference, a.submitted_at, intake.local_time(a.submitted_at, a.source_offset) AS submitted_local,
  b.key AS blob_key, b.size_bytes AS stored_bytes, b.verified_at
FROM intake.attachments f
JOIN intake.applications a ON a.advertiser_id = f.advertiser_id AND a.application_id = f.application_id
LEFT JOIN intake.blobs b ON b.advertiser_id = f.advertiser_id AND b.sha256 = f.sha256 AND b.state = 'stored' AND f.state = 'stored'
WHERE a.erased_at IS NULL;
--> statement-breakpoint
-- The type of an attachment is the source's text: only the kinds that the command knows are repeated in it. No command helps the others.
CREATE VIEW intake_analytics.attachment_problems AS
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
--> statement-breakpoint
-- What was submitted before the account was first read is history, not delay.
CREATE VIEW intake_analytics.ingest_delay_daily AS
SELECT a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date AS day,
  count(*) AS applications,
  round((percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.first_seen_at - a.submitted_at)))::numeric, 1) AS median_seconds,
  round((percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM a.first_seen_at - a.submitted_at)))::numeric, 1) AS p95_seconds,
  round(max(extract(epoch FROM a.first_seen_at - a.submitted_at)), 1) AS max_seconds,
  count(a.ready_at) AS ready,
  round((percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.ready_at - a.submitted_at)))::numeric, 1) AS median_seconds_to_ready
FROM intake.applications a
JOIN intake.advertisers v ON v.advertiser_id = a.advertiser_id AND a.submitted_at >= v.created_at
WHERE a.erased_at IS NULL
GROUP BY a.advertiser_id, intake.local_time(a.submitted_at, a.source_offset)::date;
--> statement-breakpoint
CREATE VIEW intake_analytics.sweeps AS
SELECT s.advertiser_id, s.sweep_id, s.lane, s.purpose, s.axis, s.low, s.high, s.state, s.certificate, s.reason,
  s.started_at, s.last_progress_at, s.ended_at, round(extract(epoch FROM coalesce(s.ended_at, s.last_progress_at) - s.started_at), 3) AS seconds,
  s.requests, s.received, s.added, s.changed, s.bytes,
  (SELECT count(*) FROM intake.gaps g WHERE g.advertiser_id = s.advertiser_id AND g.sweep_id = s.sweep_id) AS gaps
FROM intake.sweeps s;
--> statement-breakpoint
CREATE VIEW intake_analytics.data_quality AS
SELECT a.advertiser_id, c.finding, c.meaning, c.affected, a.held AS out_of, round(c.affected::numeric / a.held, 4) AS share,
  c.example_application_id
FROM (
  SELECT advertiser_id, count(*) AS held,
    count(*) FILTER (WHERE submitted_at IS NULL) AS no_time, min(application_id) FILTER (WHERE submitted_at IS NULL) AS no_time_id,
    count(*) FILTER (WHERE submitted_at > first_seen_at) AS future, min(application_id) FILTER (WHERE submitted_at > first_seen_at) AS future_id,
    count(*) FILTER (WHERE coalesce(job_reference, '') = '') AS no_job, min(application_id) FILTER (WHERE coalesce(job_reference, '') = '') AS no_job_id,
    count(*) FILTER (WHERE coalesce(email, '') = '') AS no_email, min(application_id) FILTER (WHERE coalesce(email, '') = '') AS no_email_id,
    count(*) FILTER (WHERE coalesce(phone, '') = '') AS no_phone, min(application_id) FILTER (WHERE coalesce(phone, '') = '') AS no_phone_id,
    count(*) FILTER (WHERE person_key IS NULL) AS nobody, min(application_id) FILTER (WHERE person_key IS NULL) AS nobody_id,
    count(absent_since) AS absent, min(application_id) FILTER (WHERE absent_since IS NOT NULL) AS absent_id,
    count(missing_since) AS missing, min(application_id) FILTER (WHERE missing_since IS NOT NULL) AS missing_id
  FROM intake.applications WHERE erased_at IS NULL GROUP BY advertiser_id
) AS a
CROSS JOIN LATERAL (VALUES
  ('no_submission_time', 'The source gave no time that can be read.', a.no_time, a.no_time_id),
  ('submitted_in_the_future', 'Submitted later than it was first stored: a wrong clock, or times shifted by their offset.', a.future, a.future_id),
  ('no_job_reference', 'The advertiser entered no reference for the job ad.', a.no_job, a.no_job_id),
  ('no_email', 'No e-mail address.', a.no_email, a.no_email_id),
  ('no_phone', 'No phone number.', a.no_phone, a.no_phone_id),
  ('no_person', 'Neither a jobseeker id nor an e-mail address: the person cannot be told from others.', a.nobody, a.nobody_id),
  ('absent', 'The source no longer shows it; not yet confirmed.', a.absent, a.absent_id),
  ('missing', 'Confirmed to be gone at the source.', a.missing, a.missing_id)
) AS c (finding, meaning, affected, example_application_id)
UNION ALL
SELECT a.advertiser_id, 'noted', format('%s %s', n.field, n.reason), count(*), NULL, NULL, min(a.application_id)
FROM intake.applications a, jsonb_to_recordset(a.notes) AS n (field text, reason text)
WHERE a.notes IS NOT NULL AND a.erased_at IS NULL GROUP BY a.advertiser_id, n.field, n.reason
UNION ALL
SELECT s.advertiser_id, 'screen_noted', format('%s %s', n.field, n.reason), count(*), NULL, NULL, min(s.application_id)
FROM intake.screens s, jsonb_to_recordset(s.notes) AS n (field text, reason text)
WHERE s.notes IS NOT NULL GROUP BY s.advertiser_id, n.field, n.reason
UNION ALL
SELECT q.advertiser_id, 'quarantined', q.reason, count(*), NULL, NULL, NULL
FROM intake.quarantine q WHERE q.resolved_at IS NULL GROUP BY q.advertiser_id, q.reason;
--> statement-breakpoint
-- Rows that came to nothing live on as numbers: anybody can make them.
CREATE VIEW intake_analytics.prefill_funnel_daily AS
SELECT advertiser_id, day, sum(started)::bigint AS started, sum(authorized)::bigint AS authorized, sum(denied)::bigint AS denied,
  sum(prefilled)::bigint AS prefilled, sum(resume_stored)::bigint AS resume_stored, sum(redeemed)::bigint AS redeemed,
  sum(failed)::bigint AS failed, sum(expired)::bigint AS expired, sum(lapsed)::bigint AS lapsed
FROM (
  SELECT advertiser_id, (created_at AT TIME ZONE interval '10 hours')::date AS day,
    count(*) AS started,
    count(authorized_at) AS authorized,
    count(*) FILTER (WHERE outcome = 'denied') AS denied,
    count(prefilled_at) AS prefilled,
    count(resume_stored_at) AS resume_stored,
    count(redeemed_at) AS redeemed,
    count(*) FILTER (WHERE outcome = 'failed') AS failed,
    count(*) FILTER (WHERE outcome = 'expired') AS expired,
    count(*) FILTER (WHERE outcome = 'lapsed' AND redeemed_at IS NULL) AS lapsed
  FROM intake.prefills GROUP BY 1, 2
  UNION ALL
  SELECT advertiser_id, day, started, authorized, denied, 0, 0, 0, failed, expired, 0 FROM intake.prefill_days
) AS counted
GROUP BY advertiser_id, day;
--> statement-breakpoint
-- Comments. A test fails for a table, view or column without one.
COMMENT ON SCHEMA intake IS 'Job applications as the source shows them, and records of how they were read. Analysts read schema intake_analytics.';
COMMENT ON SCHEMA intake_analytics IS 'What analysts read: views only.';

COMMENT ON TABLE intake.advertisers IS 'The accounts that are read, one row per configured name.';
COMMENT ON COLUMN intake.advertisers.name IS 'The name given in the configuration.';
COMMENT ON COLUMN intake.advertisers.advertiser_id IS 'The source''s id of the account: learned from the first answer or configured, then pinned.';
COMMENT ON COLUMN intake.advertisers.state IS 'active or halted. A halted account is not read until the cause is gone.';
COMMENT ON COLUMN intake.advertisers.halt_kind IS 'Why it is halted: refused (the source rejects the credential; recovers by itself) or mismatch (another account''s data came; a person must look).';
COMMENT ON COLUMN intake.advertisers.reason IS 'The halt in words for a person.';
COMMENT ON COLUMN intake.advertisers.agent_id IS 'AgentID as the source last sent it; its meaning is not described there.';
COMMENT ON COLUMN intake.advertisers.learned IS 'What was learned of this source: order, page size, which filters are honoured. Decides the order of requests, never replaces one.';
COMMENT ON COLUMN intake.advertisers.late_ms IS 'The longest delay with which an application appeared in a live poll after a higher id was known, in milliseconds.';
COMMENT ON COLUMN intake.advertisers.late_at IS 'When that was measured; widens the window that polls read again for a month.';
COMMENT ON COLUMN intake.advertisers.retention_due IS 'How many records RETENTION would erase at once, where Intake waits for a person to confirm; null otherwise.';
COMMENT ON COLUMN intake.advertisers.erased_through IS 'The highest id of an erased application: only ids up to it are compared with the tombstones. Null while nobody was erased.';
COMMENT ON COLUMN intake.advertisers.created_at IS 'When the name was first used.';
COMMENT ON COLUMN intake.advertisers.halted_at IS 'When the halt began.';
COMMENT ON COLUMN intake.advertisers.throttled_until IS 'No worker asks the source for this account before this time: its last Retry-After.';
COMMENT ON COLUMN intake.advertisers.throttled_ms IS 'How long that Retry-After was. A throttled_until further ahead was written by a clock that has been set back since.';
COMMENT ON COLUMN intake.advertisers.answered_url IS 'The base URL whose list has answered; there a 404 means that nothing matches. Elsewhere it means a wrong base URL.';

COMMENT ON TABLE intake.applications IS 'One person''s application to one job ad. One row per advertiser and application id, whatever the number of workers.';
COMMENT ON COLUMN intake.applications.advertiser_id IS 'The advertiser that was applied to.';
COMMENT ON COLUMN intake.applications.application_id IS 'The source''s id of the application.';
COMMENT ON COLUMN intake.applications.submitted_at IS 'When the application was made; null where the source''s date cannot be read (see notes).';
COMMENT ON COLUMN intake.applications.source_offset IS 'The offset from UTC that the source wrote beside the time, as +11:00. Local time: submitted_at AT TIME ZONE source_offset::interval.';
COMMENT ON COLUMN intake.applications.email IS 'The jobseeker''s contact e-mail address. Not a key: it can be missing, shared or wrong.';
COMMENT ON COLUMN intake.applications.first_name IS 'The jobseeker''s first name.';
COMMENT ON COLUMN intake.applications.last_name IS 'The jobseeker''s last name.';
COMMENT ON COLUMN intake.applications.phone IS 'The jobseeker''s contact phone number, as text.';
COMMENT ON COLUMN intake.applications.job_seeker_id IS 'The source''s id of the jobseeker''s account.';
COMMENT ON COLUMN intake.applications.job_reference IS 'The advertiser''s own reference for the job ad, where one was entered.';
COMMENT ON COLUMN intake.applications.raw IS 'The whole source object, in the JSON form of the source also where it came as XML.';
COMMENT ON COLUMN intake.applications.raw_text IS 'The source object as it was written, where jsonb could not hold it unaltered.';
COMMENT ON COLUMN intake.applications.notes IS 'What could not be stored as it came: a list of field and reason.';
COMMENT ON COLUMN intake.applications.person_key IS 'Stands for the person where no personal data may be shown: a keyed hash, different at every advertiser.';
COMMENT ON COLUMN intake.applications.content_hash IS 'Fingerprint of everything the source says of the application; the same for JSON and XML.';
COMMENT ON COLUMN intake.applications.facts_hash IS 'Fingerprint of everything but Hash and Href of the attachments. Equal values mean that nothing else changed.';
COMMENT ON COLUMN intake.applications.observed_seq IS 'Number of the request whose answer this row shows; an answer to an older request never overwrites it.';
COMMENT ON COLUMN intake.applications.first_seen_at IS 'When the application was first stored.';
COMMENT ON COLUMN intake.applications.changed_at IS 'When the stored facts last changed.';
COMMENT ON COLUMN intake.applications.ready_at IS 'When the last of its attachments reached a final state; null while one is pending.';
COMMENT ON COLUMN intake.applications.absent_since IS 'Since when the source no longer shows it, not yet confirmed.';
COMMENT ON COLUMN intake.applications.missing_since IS 'Since when it is confirmed to be gone at the source.';
COMMENT ON COLUMN intake.applications.erased_at IS 'When the person''s data was erased; only ids remain.';

COMMENT ON TABLE intake.attachment_versions IS 'Earlier files of an attachment, replaced at the source by newer ones.';
COMMENT ON COLUMN intake.attachment_versions.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.attachment_versions.application_id IS 'The application.';
COMMENT ON COLUMN intake.attachment_versions.kind IS 'As in attachments.';
COMMENT ON COLUMN intake.attachment_versions.version IS 'Which of the files it was, counted from 1.';
COMMENT ON COLUMN intake.attachment_versions.state IS 'The state it had when it was replaced.';
COMMENT ON COLUMN intake.attachment_versions.reason IS 'The reason it had when it was replaced.';
COMMENT ON COLUMN intake.attachment_versions.source_hash IS 'Hash as the source sent it.';
COMMENT ON COLUMN intake.attachment_versions.size_bytes IS 'Size as the source sent it.';
COMMENT ON COLUMN intake.attachment_versions.has_virus IS 'The source''s flag.';
COMMENT ON COLUMN intake.attachment_versions.uploaded_at IS 'When the file was attached.';
COMMENT ON COLUMN intake.attachment_versions.sha256 IS 'Fingerprint of the bytes, in hex. They are held where state is stored; elsewhere they are gone: flagged as a virus, or lost.';
COMMENT ON COLUMN intake.attachment_versions.content_type IS 'Content-Type that the source declared.';
COMMENT ON COLUMN intake.attachment_versions.detected_type IS 'Type found by looking at the bytes.';
COMMENT ON COLUMN intake.attachment_versions.file_name IS 'File name that the source declared.';
COMMENT ON COLUMN intake.attachment_versions.stored_at IS 'When the bytes were stored and verified.';
COMMENT ON COLUMN intake.attachment_versions.replaced_at IS 'When a newer file took its place.';

COMMENT ON TABLE intake.attachments IS 'What the source says exists beside an application, one row per application and kind: the newest version.';
COMMENT ON COLUMN intake.attachments.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.attachments.application_id IS 'The application.';
COMMENT ON COLUMN intake.attachments.kind IS 'resume, coverLetter, selectionCriteria or screen; another type keeps its own text, none is unknown.';
COMMENT ON COLUMN intake.attachments.version IS 'Counts the files that this kind has had; earlier ones are in attachment_versions.';
COMMENT ON COLUMN intake.attachments.state IS 'pending, stored, infected, missing, rejected, given_up or erased.';
COMMENT ON COLUMN intake.attachments.reason IS 'Why the state is missing, rejected or given_up.';
COMMENT ON COLUMN intake.attachments.source_hash IS 'Hash as the source sent it; its algorithm is not described.';
COMMENT ON COLUMN intake.attachments.size_bytes IS 'Size as the source sent it; the true size stands in blobs.';
COMMENT ON COLUMN intake.attachments.has_virus IS 'The source''s flag; null while it has not said.';
COMMENT ON COLUMN intake.attachments.uploaded_at IS 'When the file was attached.';
COMMENT ON COLUMN intake.attachments.href IS 'Href as sent. Never followed.';
COMMENT ON COLUMN intake.attachments.sha256 IS 'Fingerprint of the bytes, in hex. They are held where state is stored; elsewhere they are gone: flagged as a virus (infected), or lost and not replaced yet.';
COMMENT ON COLUMN intake.attachments.content_type IS 'Content-Type that the source declared on download.';
COMMENT ON COLUMN intake.attachments.detected_type IS 'Type found by looking at the bytes.';
COMMENT ON COLUMN intake.attachments.file_name IS 'File name that the source declared on download; never a path.';
COMMENT ON COLUMN intake.attachments.stored_at IS 'When the bytes were stored and verified.';
COMMENT ON COLUMN intake.attachments.gone_at IS 'When the source stopped listing it; what is stored stays.';
COMMENT ON COLUMN intake.attachments.notes IS 'What was noticed on download and does not keep the file from being stored, as a list of field and reason.';
COMMENT ON COLUMN intake.attachments.linked IS 'True where an equal Hash and Size at the source spared the download.';
COMMENT ON COLUMN intake.attachments.parser_version IS 'Which parser read the stored screen; null for files, and for a screen whose bytes cannot be read.';

COMMENT ON TABLE intake.audit_log IS 'Who did what by hand: erase, export, url, retry, quarantine. Holds ids and counts, no personal data.';
COMMENT ON COLUMN intake.audit_log.advertiser_id IS 'The advertiser whose data it was.';
COMMENT ON COLUMN intake.audit_log.audit_id IS 'Numbers the rows.';
COMMENT ON COLUMN intake.audit_log.at IS 'When.';
COMMENT ON COLUMN intake.audit_log.action IS 'The command: erase, export, url, retry or quarantine.';
COMMENT ON COLUMN intake.audit_log.application_id IS 'The application it was about; null where it was about several or none.';
COMMENT ON COLUMN intake.audit_log.by IS 'User and machine that ran the command, or retention.';
COMMENT ON COLUMN intake.audit_log.facts IS 'Further ids, kinds and counts.';

COMMENT ON TABLE intake.blob_store IS 'The one store that holds the blobs of this database; another one is refused.';
COMMENT ON COLUMN intake.blob_store.only IS 'Always true: there is one row.';
COMMENT ON COLUMN intake.blob_store.identity IS 'The id that the store itself carries.';
COMMENT ON COLUMN intake.blob_store.location IS 'Where it lay when it was first used.';
COMMENT ON COLUMN intake.blob_store.pinned_at IS 'When it was first used.';

COMMENT ON TABLE intake.blobs IS 'Bytes that we hold, or are about to: once per advertiser and content.';
COMMENT ON COLUMN intake.blobs.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.blobs.sha256 IS 'Fingerprint of the bytes, in hex.';
COMMENT ON COLUMN intake.blobs.size_bytes IS 'How many bytes they are.';
COMMENT ON COLUMN intake.blobs.key IS 'Where they lie, relative to BLOBS_URL.';
COMMENT ON COLUMN intake.blobs.state IS 'writing (announced, not yet proven), stored, damaged (verify found other bytes or none), infected (flagged as a virus: never kept) or deleting (nothing refers to them; the row goes with the object).';
COMMENT ON COLUMN intake.blobs.intended_at IS 'When they were last announced; younger ones are never collected.';
COMMENT ON COLUMN intake.blobs.verified_at IS 'When the store last proved to hold exactly these bytes.';
COMMENT ON COLUMN intake.blobs.infected_at IS 'When a flag at the source marked them as infected.';
COMMENT ON COLUMN intake.blobs.deleted_at IS 'When the infected bytes were deleted from the store.';
COMMENT ON COLUMN intake.blobs.orphaned_at IS 'Since when nothing refers to them; deleted after a grace.';
COMMENT ON COLUMN intake.blobs.delete_token IS 'Who deletes the object at this moment; null where nobody does. Equal bytes are not put meanwhile.';
COMMENT ON COLUMN intake.blobs.delete_until IS 'When that lapses: the process died, and another one may delete or put.';

COMMENT ON TABLE intake.coverage IS 'Ranges that were read to their end: with which certificate, and as of when.';
COMMENT ON COLUMN intake.coverage.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.coverage.axis IS 'id or date.';
COMMENT ON COLUMN intake.coverage.low IS 'First position of the range.';
COMMENT ON COLUMN intake.coverage.high IS 'Last position of the range; null is no end.';
COMMENT ON COLUMN intake.coverage.certificate IS 'proven, assumed or unproven.';
COMMENT ON COLUMN intake.coverage.risk IS 'What stands against the certificate: none, something harmless (too few applications to tell, say), or a real doubt.';
COMMENT ON COLUMN intake.coverage.reason IS 'What the certificate rests on.';
COMMENT ON COLUMN intake.coverage.as_of IS 'When the sweep began: what the source showed later is not covered.';
COMMENT ON COLUMN intake.coverage.complete_through IS 'Applications submitted up to here are covered: the beginning of the sweep less the lag.';
COMMENT ON COLUMN intake.coverage.sweep_id IS 'The sweep that closed it.';

COMMENT ON TABLE intake.cursors IS 'How far the live sweep of an advertiser has come, as committed.';
COMMENT ON COLUMN intake.cursors.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.cursors.after_id IS 'Every application up to this id has been read.';
COMMENT ON COLUMN intake.cursors.after_date IS 'The newest submission time stored that does not lie in the future.';
COMMENT ON COLUMN intake.cursors.as_of IS 'When this was last true.';

COMMENT ON TABLE intake.downloads IS 'The queue: one row per attachment that is still to be fetched. The row goes when the work is done.';
COMMENT ON COLUMN intake.downloads.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.downloads.application_id IS 'The application.';
COMMENT ON COLUMN intake.downloads.kind IS 'As in attachments.';
COMMENT ON COLUMN intake.downloads.priority IS '0 live arrivals, 1 what a backfill brought, 2 suspects: their claim lapsed, and they are fetched alone.';
COMMENT ON COLUMN intake.downloads.due_at IS 'Not before this time.';
COMMENT ON COLUMN intake.downloads.attempts IS 'Failed attempts that count; claims that were returned without a failure do not.';
COMMENT ON COLUMN intake.downloads.lapses IS 'How often its claim lapsed while it was fetched alone; three end it.';
COMMENT ON COLUMN intake.downloads.lease_token IS 'Names the claim; only its holder may complete or fail it.';
COMMENT ON COLUMN intake.downloads.leased_until IS 'When the claim on it lapses; null where there is none.';
COMMENT ON COLUMN intake.downloads.sha256 IS 'The bytes that are being put into the blob store for it; null before they are fetched.';
COMMENT ON COLUMN intake.downloads.trouble IS 'What went wrong last, without personal data.';
COMMENT ON COLUMN intake.downloads.trouble_kind IS 'The kind of what went wrong last; missing is a file that the source does not have yet.';

COMMENT ON TABLE intake.erasure_jobs IS 'Erasures as work: what is still to be done, and the receipt when nothing is. Names nobody.';
COMMENT ON COLUMN intake.erasure_jobs.advertiser_id IS 'The advertiser whose data is erased.';
COMMENT ON COLUMN intake.erasure_jobs.job_id IS 'Names the job and its receipt.';
COMMENT ON COLUMN intake.erasure_jobs.sought_by IS 'What the person was found by: application (its id), jobseeker (account id), address (e-mail) or retention (age).';
COMMENT ON COLUMN intake.erasure_jobs.sought IS 'HMAC by PRIVACY_KEY of what was sought, so that the same request finds its job again.';
COMMENT ON COLUMN intake.erasure_jobs.requested_at IS 'When the rows were erased: they went in the transaction that wrote this row.';
COMMENT ON COLUMN intake.erasure_jobs.requested_by IS 'Who asked: user and machine of the command, or retention.';
COMMENT ON COLUMN intake.erasure_jobs.step IS 'bytes (files are being deleted), waiting (for what ran at the time to lapse) or closed.';
COMMENT ON COLUMN intake.erasure_jobs.check_again_at IS 'When every lease and download of that time has lapsed; the second check comes after that.';
COMMENT ON COLUMN intake.erasure_jobs.application_ids IS 'The applications, until the job is closed; null then, since together they tell that one person made them.';
COMMENT ON COLUMN intake.erasure_jobs.hashes IS 'sha256 of the files to delete where nobody else refers to them, until the job is closed; null then.';
COMMENT ON COLUMN intake.erasure_jobs.counts IS 'How many rows and files went, by kind.';
COMMENT ON COLUMN intake.erasure_jobs.checks IS 'How many checks followed; the last one found nothing.';
COMMENT ON COLUMN intake.erasure_jobs.trouble IS 'What keeps the files from being deleted, in words; null where nothing does.';
COMMENT ON COLUMN intake.erasure_jobs.closed_at IS 'When the last check found nothing: the receipt.';

COMMENT ON TABLE intake.erasures IS 'What was erased and must not return: keyed hashes only. Every transaction that writes applications or quarantine checks this table.';
COMMENT ON COLUMN intake.erasures.advertiser_id IS 'The advertiser whose data it was.';
COMMENT ON COLUMN intake.erasures.tombstone IS 'HMAC by PRIVACY_KEY of an application id, or of an element that was in quarantine. Without the key it leads nowhere.';
COMMENT ON COLUMN intake.erasures.job_id IS 'The job that erased it, see intake.erasure_jobs.';
COMMENT ON COLUMN intake.erasures.erased_at IS 'When it was erased.';

COMMENT ON TABLE intake.events IS 'What happened to applications, for integrators, in commit order within an advertiser. Read on from the last event_id seen.';
COMMENT ON COLUMN intake.events.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.events.event_id IS 'Rises in commit order within an advertiser; numbers may skip, nothing ever appears behind a reader.';
COMMENT ON COLUMN intake.events.application_id IS 'The application.';
COMMENT ON COLUMN intake.events.type IS 'application.received, .changed, .ready, .missing or .erased.';
COMMENT ON COLUMN intake.events.at IS 'When it happened.';

COMMENT ON TABLE intake.hash_trust IS 'How far the Hash of an advertiser''s source is believed; earned by comparison, lost by one contradiction.';
COMMENT ON COLUMN intake.hash_trust.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.hash_trust.agreed IS 'Pairs of equal Hash and Size that were both fetched and had equal bytes.';
COMMENT ON COLUMN intake.hash_trust.contradicted_at IS 'When such a pair had different bytes; no download is spared since.';
COMMENT ON COLUMN intake.hash_trust.unchanged IS 'How often Hash changed and the bytes did not; from three on it no longer tells a change.';

COMMENT ON TABLE intake.leases IS 'Who sweeps an advertiser, per lane; a claim that lapses by the database''s clock.';
COMMENT ON COLUMN intake.leases.name IS 'The advertiser''s configured name.';
COMMENT ON COLUMN intake.leases.lane IS 'live or backfill: the two can run side by side.';
COMMENT ON COLUMN intake.leases.owner IS 'The process that holds or last held the lane.';
COMMENT ON COLUMN intake.leases.epoch IS 'Rises with every change of hands; every write transaction checks it.';
COMMENT ON COLUMN intake.leases.expires_at IS 'When the claim lapses; -infinity when it was given back.';
COMMENT ON COLUMN intake.leases.done_at IS 'When work under it last came to its end: other workers leave the advertiser alone for a while.';

COMMENT ON TABLE intake.migrations IS 'Which migrations were applied.';
COMMENT ON COLUMN intake.migrations.id IS 'Counts migrations.';
COMMENT ON COLUMN intake.migrations.hash IS 'Fingerprint of the migration''s text.';
COMMENT ON COLUMN intake.migrations.created_at IS 'When the migration was written, in milliseconds since 1970.';
COMMENT ON COLUMN intake.migrations.version IS 'The version of Intake that applied it.';

COMMENT ON TABLE intake.oauth_states IS 'OAuth states: each works for one browser, for ten minutes and once. Spent ones are dropped after a day.';
COMMENT ON COLUMN intake.oauth_states.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.oauth_states.state_hash IS 'Fingerprint of the state parameter.';
COMMENT ON COLUMN intake.oauth_states.binding_hash IS 'Fingerprint of the cookie of the browser that began.';
COMMENT ON COLUMN intake.oauth_states.prefill_id IS 'The prefill it leads to.';
COMMENT ON COLUMN intake.oauth_states.created_at IS 'When it was given out.';
COMMENT ON COLUMN intake.oauth_states.expires_at IS 'When it stops working.';
COMMENT ON COLUMN intake.oauth_states.used_at IS 'When it was used.';

COMMENT ON TABLE intake.prefill_days IS 'Clicks on the button that came to nothing, counted by day. Their rows are deleted.';
COMMENT ON COLUMN intake.prefill_days.advertiser_id IS 'The advertiser whose form was to be filled.';
COMMENT ON COLUMN intake.prefill_days.day IS 'The day, at +10:00, on which the button was clicked.';
COMMENT ON COLUMN intake.prefill_days.started IS 'Clicks on the button.';
COMMENT ON COLUMN intake.prefill_days.authorized IS 'Candidates who came back with a code.';
COMMENT ON COLUMN intake.prefill_days.denied IS 'Candidates who said no.';
COMMENT ON COLUMN intake.prefill_days.failed IS 'Prefills that failed, at the source or with us.';
COMMENT ON COLUMN intake.prefill_days.expired IS 'Prefills that came back too late, or never.';

COMMENT ON TABLE intake.prefills IS 'What candidates let a careers site fill in, one row per click on its button. The person leaves the row when nobody redeems it in time, or when erased; a row that came to nothing is deleted after an hour and counted in intake.prefill_days.';
COMMENT ON COLUMN intake.prefills.advertiser_id IS 'The advertiser whose form is filled.';
COMMENT ON COLUMN intake.prefills.prefill_id IS 'Names the prefill.';
COMMENT ON COLUMN intake.prefills.outcome IS 'started, denied (by the candidate), expired (came back too late), failed, prefilled (profile here, not handed out), redeemed (handed out), lapsed (never redeemed; the person''s data was removed) or erased.';
COMMENT ON COLUMN intake.prefills.reason IS 'Why it was denied, expired or failed, in our words.';
COMMENT ON COLUMN intake.prefills.form_url IS 'The application form, told to the source as applicationFormUrl.';
COMMENT ON COLUMN intake.prefills.return_url IS 'Where the browser went afterwards.';
COMMENT ON COLUMN intake.prefills.position_title IS 'Title of the position, as the careers site gave it.';
COMMENT ON COLUMN intake.prefills.position_uri IS 'Address of the job ad, as the careers site gave it.';
COMMENT ON COLUMN intake.prefills.country_code IS 'Two letters, as the careers site gave them.';
COMMENT ON COLUMN intake.prefills.postal_code IS 'Postal code, as the careers site gave it.';
COMMENT ON COLUMN intake.prefills.profile IS 'The whole profile as the source sent it. Its members are not described by the source.';
COMMENT ON COLUMN intake.prefills.profile_text IS 'The profile unaltered, where jsonb could not hold it.';
COMMENT ON COLUMN intake.prefills.notes IS 'What could not be kept or fetched as it came: a list of {field, reason}; null when all could.';
COMMENT ON COLUMN intake.prefills.first_name IS 'First name, where the profile has one.';
COMMENT ON COLUMN intake.prefills.last_name IS 'Last name, where the profile has one.';
COMMENT ON COLUMN intake.prefills.email IS 'E-mail address, where the profile has one.';
COMMENT ON COLUMN intake.prefills.phone IS 'Phone number, where the profile has one.';
COMMENT ON COLUMN intake.prefills.person_key IS 'Stands for the person by e-mail address, keyed; as in intake.applications where there is no jobseeker id.';
COMMENT ON COLUMN intake.prefills.person_keys IS 'Stand for the person: one keyed hash for each address and each account id that the profile or its session named. Empty where it named none.';
COMMENT ON COLUMN intake.prefills.resume_sha256 IS 'Fingerprint of the resume, in hex; its bytes lie in the blob store under prefills/advertiser_id/prefill_id once resume_stored_at is set, and may lie there before.';
COMMENT ON COLUMN intake.prefills.resume_size_bytes IS 'Size of the resume.';
COMMENT ON COLUMN intake.prefills.resume_content_type IS 'Type of the resume, as its bytes show it.';
COMMENT ON COLUMN intake.prefills.resume_file_name IS 'Name of the resume file, without any path.';
COMMENT ON COLUMN intake.prefills.resume_reason IS 'Why there is no resume.';
COMMENT ON COLUMN intake.prefills.handle_hash IS 'Fingerprint of the one-time handle by which the profile is redeemed.';
COMMENT ON COLUMN intake.prefills.created_at IS 'When the button was clicked.';
COMMENT ON COLUMN intake.prefills.authorized_at IS 'When the candidate came back with a code.';
COMMENT ON COLUMN intake.prefills.prefilled_at IS 'When the profile was kept.';
COMMENT ON COLUMN intake.prefills.expires_at IS 'When a profile that nobody has redeemed leaves.';
COMMENT ON COLUMN intake.prefills.resume_put_until IS 'The bytes of the resume may be on their way to the blob store until then; null once that is over.';
COMMENT ON COLUMN intake.prefills.resume_stored_at IS 'When the bytes of the resume were in the blob store.';
COMMENT ON COLUMN intake.prefills.redeemed_at IS 'When the careers site fetched the profile.';
COMMENT ON COLUMN intake.prefills.ended_at IS 'When it came to its outcome.';

COMMENT ON TABLE intake.primary_job_seeking_info IS 'What the jobseeker said of their work when applying; optional at the source.';
COMMENT ON COLUMN intake.primary_job_seeking_info.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.primary_job_seeking_info.application_id IS 'The application.';
COMMENT ON COLUMN intake.primary_job_seeking_info.job_title IS 'Current or most recent job title.';
COMMENT ON COLUMN intake.primary_job_seeking_info.company_name IS 'Current or most recent company.';
COMMENT ON COLUMN intake.primary_job_seeking_info.time_in_role_months IS 'Time in that role, in months.';
COMMENT ON COLUMN intake.primary_job_seeking_info.is_new_to_workforce IS 'Whether the jobseeker is new to the workforce.';
COMMENT ON COLUMN intake.primary_job_seeking_info.gone_at IS 'When the source stopped sending it; the last known values stay.';

COMMENT ON TABLE intake.quarantine IS 'Elements of the list that are no application: without a usable id, or no object at all. Kept whole.';
COMMENT ON COLUMN intake.quarantine.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.quarantine.fingerprint IS 'Identifies the element by what is stable in it; the same element again counts up.';
COMMENT ON COLUMN intake.quarantine.application_id IS 'The application it became, once replayed.';
COMMENT ON COLUMN intake.quarantine.reason IS 'Why it could not be stored as an application.';
COMMENT ON COLUMN intake.quarantine.raw IS 'The element.';
COMMENT ON COLUMN intake.quarantine.raw_text IS 'The element as it was written, where jsonb could not hold it unaltered.';
COMMENT ON COLUMN intake.quarantine.first_seen_at IS 'When it was first seen.';
COMMENT ON COLUMN intake.quarantine.last_seen_at IS 'When it was last seen.';
COMMENT ON COLUMN intake.quarantine.seen IS 'In how many sweeps it was seen.';
COMMENT ON COLUMN intake.quarantine.sweep_id IS 'The sweep that last saw it.';
COMMENT ON COLUMN intake.quarantine.resolved_at IS 'When it was replayed into an application.';

COMMENT ON TABLE intake.ranges IS 'The ranges that a sweep is made of, while it runs; afterwards only those that stayed open.';
COMMENT ON COLUMN intake.ranges.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.ranges.sweep_id IS 'The sweep.';
COMMENT ON COLUMN intake.ranges.low IS 'First position of the range.';
COMMENT ON COLUMN intake.ranges.high IS 'Last position of the range; null is no end.';
COMMENT ON COLUMN intake.ranges.state IS 'open, closed (read to its end) or stuck (can neither be split nor closed).';
COMMENT ON COLUMN intake.ranges.evidence IS 'What the answers over it have shown, to continue after a stop.';
COMMENT ON COLUMN intake.ranges.opened_at IS 'Since when it is in this state.';

COMMENT ON TABLE intake.rate_limits IS 'The rate limit of each source, shared by all workers.';
COMMENT ON COLUMN intake.rate_limits.source IS 'The source''s address.';
COMMENT ON COLUMN intake.rate_limits.next_at IS 'When the next request may be sent.';

COMMENT ON TABLE intake.recent_pages IS 'Pages read lately, kept for minutes while two lanes run side by side: a slower, older request must not overwrite what they showed.';
COMMENT ON COLUMN intake.recent_pages.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.recent_pages.seq IS 'Number of the request, taken before it was sent.';
COMMENT ON COLUMN intake.recent_pages.lane IS 'live or backfill.';
COMMENT ON COLUMN intake.recent_pages.lowest_id IS 'Smallest application id in the answer.';
COMMENT ON COLUMN intake.recent_pages.highest_id IS 'Largest application id in the answer.';
COMMENT ON COLUMN intake.recent_pages.finished_at IS 'When the answer was written.';

COMMENT ON TABLE intake.screen_answers IS 'Every answer that was offered or entered, chosen or not.';
COMMENT ON COLUMN intake.screen_answers.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.screen_answers.application_id IS 'The application.';
COMMENT ON COLUMN intake.screen_answers.screen_no IS 'The screen.';
COMMENT ON COLUMN intake.screen_answers.question_no IS 'The question.';
COMMENT ON COLUMN intake.screen_answers.answer_no IS 'Place in the question in source order, from 1.';
COMMENT ON COLUMN intake.screen_answers.answer_id IS 'The source''s id of the answer; null where it gave none.';
COMMENT ON COLUMN intake.screen_answers.text IS 'The answer offered, or the text entered; empty where there is none.';
COMMENT ON COLUMN intake.screen_answers.selected IS 'True only where the source says that the jobseeker selected or entered it; a text of a Text question without that word is false.';

COMMENT ON TABLE intake.screen_questions IS 'The questions of a screen.';
COMMENT ON COLUMN intake.screen_questions.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.screen_questions.application_id IS 'The application.';
COMMENT ON COLUMN intake.screen_questions.screen_no IS 'The screen.';
COMMENT ON COLUMN intake.screen_questions.question_no IS 'Place in the screen in source order, from 1.';
COMMENT ON COLUMN intake.screen_questions.question_id IS 'The source''s id of the question; null where it gave none.';
COMMENT ON COLUMN intake.screen_questions.type IS 'The source''s word: MultipleChoiceOneAnswer, MultipleChoiceManyAnswers, Text, True/False, URLQuestion, or another.';
COMMENT ON COLUMN intake.screen_questions.text IS 'The question.';

COMMENT ON TABLE intake.screens IS 'Screening questionnaires as answered, read from the stored bytes of the attachment of kind screen; an application may have several.';
COMMENT ON COLUMN intake.screens.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.screens.application_id IS 'The application.';
COMMENT ON COLUMN intake.screens.screen_no IS 'Place among the application''s screens in source order, from 1.';
COMMENT ON COLUMN intake.screens.screen_id IS 'The source''s id of the questionnaire; null where it gave none. Not a key: ids may be missing or come twice.';
COMMENT ON COLUMN intake.screens.name IS 'The advertiser''s name for the questionnaire.';
COMMENT ON COLUMN intake.screens.outcome IS 'pass or fail as the source says (successful True or False); unknown where it says neither, which is never a fail.';
COMMENT ON COLUMN intake.screens.notes IS 'What could not be stored as it came: a list of {field, reason}; null when all could.';
COMMENT ON COLUMN intake.screens.sha256 IS 'Fingerprint of the bytes that these rows were read from, in hex: the blob to read again.';
COMMENT ON COLUMN intake.screens.parser_version IS 'Which version of the reader made these rows; older ones can be rebuilt from the bytes.';

COMMENT ON TABLE intake.sweeps IS 'Sweeps: each reads a range of the list and ends with a certificate. A poll that found nothing new has no row.';
COMMENT ON COLUMN intake.sweeps.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.sweeps.sweep_id IS 'Counts sweeps; numbers may skip.';
COMMENT ON COLUMN intake.sweeps.lane IS 'live or backfill.';
COMMENT ON COLUMN intake.sweeps.purpose IS 'live, recheck, backfill or witness.';
COMMENT ON COLUMN intake.sweeps.axis IS 'id, or date: low and high are seconds since 1970 then.';
COMMENT ON COLUMN intake.sweeps.low IS 'First position of the range.';
COMMENT ON COLUMN intake.sweeps.high IS 'Last position of the range; null is no end.';
COMMENT ON COLUMN intake.sweeps.state IS 'running, closed (read to its end), open (ended with gaps left) or dropped.';
COMMENT ON COLUMN intake.sweeps.certificate IS 'proven, assumed or unproven, once ended.';
COMMENT ON COLUMN intake.sweeps.risk IS 'What stands against the certificate: none, harmless or doubt; null until the sweep has ended.';
COMMENT ON COLUMN intake.sweeps.reason IS 'What the certificate rests on, or why there is none.';
COMMENT ON COLUMN intake.sweeps.facts IS 'The sweep''s state apart from its ranges, to continue after a stop.';
COMMENT ON COLUMN intake.sweeps.started_at IS 'When its first request was sent.';
COMMENT ON COLUMN intake.sweeps.last_progress_at IS 'When its last answer was committed.';
COMMENT ON COLUMN intake.sweeps.ended_at IS 'When it ended.';
COMMENT ON COLUMN intake.sweeps.requests IS 'Requests sent.';
COMMENT ON COLUMN intake.sweeps.received IS 'Applications returned, with repetitions.';
COMMENT ON COLUMN intake.sweeps.added IS 'Applications that were new.';
COMMENT ON COLUMN intake.sweeps.changed IS 'Applications that had changed.';
COMMENT ON COLUMN intake.sweeps.bytes IS 'Bytes of the answers.';

COMMENT ON TABLE intake.waits IS 'What workers wait for: a source, the database or the storage that cannot be used. A row whose worker stopped refreshing it says nothing any more.';
COMMENT ON COLUMN intake.waits.worker IS 'The process that waits: command, host, process id.';
COMMENT ON COLUMN intake.waits.dependency IS 'source, database or storage.';
COMMENT ON COLUMN intake.waits.reason IS 'What happened, in words: host, port and error code.';
COMMENT ON COLUMN intake.waits.advertisers IS 'Configured names of the accounts that wait; empty where all do.';
COMMENT ON COLUMN intake.waits.since IS 'When the wait began.';
COMMENT ON COLUMN intake.waits.seen_at IS 'When the worker last said so.';

COMMENT ON SEQUENCE intake.event_seq IS 'Numbers events.';

COMMENT ON SEQUENCE intake.request_seq IS 'Numbers requests before they are sent, so that answers can be ordered by their requests.';

COMMENT ON SEQUENCE intake.sweep_seq IS 'Numbers sweeps.';

COMMENT ON VIEW intake.gaps IS 'What sweeps have left open: ranges of the list that were not read to their end.';
COMMENT ON COLUMN intake.gaps.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.gaps.sweep_id IS 'The sweep that left it open, or still runs.';
COMMENT ON COLUMN intake.gaps.axis IS 'id, or date: positions are seconds since 1970 then.';
COMMENT ON COLUMN intake.gaps.low IS 'First position of the range.';
COMMENT ON COLUMN intake.gaps.high IS 'Last position of the range; null is no end.';
COMMENT ON COLUMN intake.gaps.state IS 'open, or stuck: can neither be split nor closed.';
COMMENT ON COLUMN intake.gaps.opened_at IS 'Since when it is in this state.';

COMMENT ON VIEW intake.open_ranges IS 'Ranges of ids that nothing vouches for: never read, read without a certificate, or left as a gap.';
COMMENT ON COLUMN intake.open_ranges.advertiser IS 'The name given in the configuration.';
COMMENT ON COLUMN intake.open_ranges.advertiser_id IS 'The source''s id of the account; null until it is learned.';
COMMENT ON COLUMN intake.open_ranges.low IS 'First id of the range.';
COMMENT ON COLUMN intake.open_ranges.high IS 'Last id of the range; null is no end.';

COMMENT ON VIEW intake_analytics.answer_distribution IS 'What people answer, and which answers knock out: per job, questionnaire and offered answer, also those nobody chose. Filter by job_reference.';
COMMENT ON COLUMN intake_analytics.answer_distribution.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.answer_distribution.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.answer_distribution.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.answer_distribution.question_id IS 'The source''s id of the question.';
COMMENT ON COLUMN intake_analytics.answer_distribution.question_type IS 'The source''s word: MultipleChoiceOneAnswer, MultipleChoiceManyAnswers, True/False, Text, URLQuestion, or another.';
COMMENT ON COLUMN intake_analytics.answer_distribution.question_text IS 'The question.';
COMMENT ON COLUMN intake_analytics.answer_distribution.wording IS 'Numbers the wordings that one question has had, oldest first: filter by question_id to see them side by side.';
COMMENT ON COLUMN intake_analytics.answer_distribution.answer_text IS 'The answer offered.';
COMMENT ON COLUMN intake_analytics.answer_distribution.offered IS 'How often it was offered.';
COMMENT ON COLUMN intake_analytics.answer_distribution.chosen IS 'How often it was chosen.';
COMMENT ON COLUMN intake_analytics.answer_distribution.share IS 'Chosen of offered, from 0 to 1.';
COMMENT ON COLUMN intake_analytics.answer_distribution.pass_rate_chosen IS 'Share of passed screens among those that chose it and have a known outcome.';
COMMENT ON COLUMN intake_analytics.answer_distribution.pass_rate_not_chosen IS 'The same among those that were offered it and did not choose it.';
COMMENT ON COLUMN intake_analytics.answer_distribution.knock_out_power IS 'How much lower the pass rate is with this answer: 1 means that it decides, 0 that it does not matter, below 0 that it helps.';
COMMENT ON COLUMN intake_analytics.answer_distribution.first_offered_at IS 'Submission time of the first application that was offered it.';
COMMENT ON COLUMN intake_analytics.answer_distribution.last_offered_at IS 'Submission time of the last one.';
COMMENT ON COLUMN intake_analytics.answer_distribution.first_offered_local IS 'first_offered_at on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.answer_distribution.last_offered_local IS 'last_offered_at on the source''s clocks.';

COMMENT ON VIEW intake_analytics.applications IS 'Applications with PERSONAL DATA: who applied for what, and when. Without personal data: applications_anonymous.';
COMMENT ON COLUMN intake_analytics.applications.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.applications.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.applications.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.applications.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.applications.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.applications.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.applications.source_offset IS 'The offset from UTC that the source wrote beside the time.';
COMMENT ON COLUMN intake_analytics.applications.email IS 'Contact e-mail address. Not a key: it can be missing, shared or wrong.';
COMMENT ON COLUMN intake_analytics.applications.first_name IS 'First name.';
COMMENT ON COLUMN intake_analytics.applications.last_name IS 'Last name.';
COMMENT ON COLUMN intake_analytics.applications.phone IS 'Contact phone number, as text.';
COMMENT ON COLUMN intake_analytics.applications.job_seeker_id IS 'The source''s id of the jobseeker''s account.';
COMMENT ON COLUMN intake_analytics.applications.current_job_title IS 'Current or most recent job title, as the jobseeker typed it.';
COMMENT ON COLUMN intake_analytics.applications.current_company IS 'Current or most recent company, as the jobseeker typed it.';
COMMENT ON COLUMN intake_analytics.applications.time_in_role_months IS 'Months in the current or most recent role.';
COMMENT ON COLUMN intake_analytics.applications.is_new_to_workforce IS 'Whether the jobseeker is new to the workforce.';
COMMENT ON COLUMN intake_analytics.applications.screening_outcome IS 'fail when any of its screens failed, pass when all passed, unknown when the source does not say; null without a screen.';
COMMENT ON COLUMN intake_analytics.applications.first_seen_at IS 'When Intake first stored it.';
COMMENT ON COLUMN intake_analytics.applications.changed_at IS 'When the stored facts last changed.';
COMMENT ON COLUMN intake_analytics.applications.ready_at IS 'When the last of its attachments reached a final state; null while one is pending.';
COMMENT ON COLUMN intake_analytics.applications.missing_since IS 'Since when it is confirmed to be gone at the source.';
COMMENT ON COLUMN intake_analytics.applications.notes IS 'What could not be stored as it came: a list of field and reason.';

COMMENT ON VIEW intake_analytics.applications_anonymous IS 'Applications without personal data: count, filter and join by person_key. Nothing that a person typed is in it.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.applications_anonymous.source_offset IS 'The offset from UTC that the source wrote beside the time.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.time_in_role_months IS 'Months in the current or most recent role.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.is_new_to_workforce IS 'Whether the jobseeker is new to the workforce.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.screening_outcome IS 'fail when any of its screens failed, pass when all passed, unknown when the source does not say; null without a screen.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.first_seen_at IS 'When Intake first stored it.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.changed_at IS 'When the stored facts last changed.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.ready_at IS 'When the last of its attachments reached a final state; null while one is pending.';
COMMENT ON COLUMN intake_analytics.applications_anonymous.missing_since IS 'Since when it is confirmed to be gone at the source.';

COMMENT ON VIEW intake_analytics.applications_daily IS 'Applications per day and job: how many people apply, and how they are screened. Sum over job_reference for a day, over day for a job; people do not add up.';
COMMENT ON COLUMN intake_analytics.applications_daily.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.applications_daily.day IS 'Day of submission on the source''s clocks; null where the time cannot be read.';
COMMENT ON COLUMN intake_analytics.applications_daily.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.applications_daily.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.applications_daily.people IS 'Different persons among them.';
COMMENT ON COLUMN intake_analytics.applications_daily.screens IS 'Screening questionnaires answered; an application may have several.';
COMMENT ON COLUMN intake_analytics.applications_daily.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake_analytics.applications_daily.screens_failed IS 'Of those, failed; the rest has no known outcome.';

COMMENT ON VIEW intake_analytics.attachment_problems IS 'Attachments that need attention: final states other than stored, and downloads that failed and wait for another try.';
COMMENT ON COLUMN intake_analytics.attachment_problems.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.attachment_problems.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.attachment_problems.kind IS 'resume, coverLetter, selectionCriteria or screen; another type keeps its own text.';
COMMENT ON COLUMN intake_analytics.attachment_problems.problem IS 'infected, missing, rejected, given_up or waiting.';
COMMENT ON COLUMN intake_analytics.attachment_problems.reason IS 'Why, in words.';
COMMENT ON COLUMN intake_analytics.attachment_problems.attempts IS 'Failed tries of one that waits.';
COMMENT ON COLUMN intake_analytics.attachment_problems.uploaded_at IS 'When the file was attached.';
COMMENT ON COLUMN intake_analytics.attachment_problems.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.attachment_problems.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.attachment_problems.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.attachment_problems.next IS 'The command that tries again; null where nothing can be done.';
COMMENT ON COLUMN intake_analytics.attachment_problems.uploaded_local IS 'When the file was attached, on the source''s clocks.';

COMMENT ON VIEW intake_analytics.attachments IS 'Attachments, whether they are stored, and where: one row per application and kind, the newest version. File names are personal data and not in it.';
COMMENT ON COLUMN intake_analytics.attachments.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.attachments.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.attachments.kind IS 'resume, coverLetter, selectionCriteria or screen; another type keeps its own text.';
COMMENT ON COLUMN intake_analytics.attachments.version IS 'Counts the files that this kind has had.';
COMMENT ON COLUMN intake_analytics.attachments.state IS 'pending, stored, infected, missing, rejected, given_up or erased.';
COMMENT ON COLUMN intake_analytics.attachments.reason IS 'Why the state is missing, rejected or given_up.';
COMMENT ON COLUMN intake_analytics.attachments.size_bytes IS 'Size as the source states it.';
COMMENT ON COLUMN intake_analytics.attachments.has_virus IS 'The source''s flag; null while it has not said.';
COMMENT ON COLUMN intake_analytics.attachments.uploaded_at IS 'When the file was attached.';
COMMENT ON COLUMN intake_analytics.attachments.uploaded_local IS 'The same on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.attachments.sha256 IS 'Fingerprint of the bytes, in hex; names the object in the store where state is stored, elsewhere the bytes are gone.';
COMMENT ON COLUMN intake_analytics.attachments.content_type IS 'Type that the source declared, without its parameters.';
COMMENT ON COLUMN intake_analytics.attachments.detected_type IS 'Type found by looking at the bytes.';
COMMENT ON COLUMN intake_analytics.attachments.stored_at IS 'When the bytes were stored and verified.';
COMMENT ON COLUMN intake_analytics.attachments.gone_at IS 'When the source stopped listing it.';
COMMENT ON COLUMN intake_analytics.attachments.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.attachments.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.attachments.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.attachments.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';
COMMENT ON COLUMN intake_analytics.attachments.blob_key IS 'Where the bytes lie, relative to BLOBS_URL; null where none are held. Attachments with equal bytes share it.';
COMMENT ON COLUMN intake_analytics.attachments.stored_bytes IS 'True size of the stored bytes; size_bytes is what the source says.';
COMMENT ON COLUMN intake_analytics.attachments.verified_at IS 'When the store was last proven to hold these bytes.';

COMMENT ON VIEW intake_analytics.completeness IS 'Is everything here, and through when? One row per advertiser: SELECT certificate, complete_through >= timestamptz ''2026-08-01 +10'' AS july FROM intake_analytics.completeness.';
COMMENT ON COLUMN intake_analytics.completeness.advertiser IS 'The configured name.';
COMMENT ON COLUMN intake_analytics.completeness.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.completeness.certificate IS 'proven, assumed or unproven: the weakest over all ids.';
COMMENT ON COLUMN intake_analytics.completeness.reason IS 'What the certificate rests on, or why there is none.';
COMMENT ON COLUMN intake_analytics.completeness.complete_through IS 'Applications submitted up to here are all stored, under the certificate; null while nothing is.';
COMMENT ON COLUMN intake_analytics.completeness.as_of IS 'When the oldest of the sweeps behind it began.';
COMMENT ON COLUMN intake_analytics.completeness.open_ranges IS 'Ranges of ids that nothing vouches for.';
COMMENT ON COLUMN intake_analytics.completeness.polled_at IS 'When the last poll ended.';
COMMENT ON COLUMN intake_analytics.completeness.lateness_ms IS 'The longest delay with which an application appeared in a live poll after a higher id was known, in milliseconds.';
COMMENT ON COLUMN intake_analytics.completeness.assumptions IS 'What proven rests on and no question can test.';
COMMENT ON COLUMN intake_analytics.completeness.risk IS 'What stands against the certificate: none, harmless, or doubt. Do not rely on completeness where it is doubt.';

COMMENT ON VIEW intake_analytics.data_quality IS 'What is odd about the data, by advertiser: fields that are missing, values that could not be kept, elements in quarantine. Findings of the first kind are listed also where nothing is affected.';
COMMENT ON COLUMN intake_analytics.data_quality.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.data_quality.finding IS 'A stable word for the kind of finding.';
COMMENT ON COLUMN intake_analytics.data_quality.meaning IS 'The finding in words; for noted and quarantined the field or the reason.';
COMMENT ON COLUMN intake_analytics.data_quality.affected IS 'How many applications, screens or elements.';
COMMENT ON COLUMN intake_analytics.data_quality.out_of IS 'Of how many applications; null where that makes no sense.';
COMMENT ON COLUMN intake_analytics.data_quality.share IS 'affected of out_of, from 0 to 1.';
COMMENT ON COLUMN intake_analytics.data_quality.example_application_id IS 'The smallest id affected: one to look at.';

COMMENT ON VIEW intake_analytics.ingest_delay_daily IS 'How long applications take from submission to the database, per day; only those made after the account was first read.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.day IS 'Day of submission on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.median_seconds IS 'Half of them were stored within this.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.p95_seconds IS '95 of 100 were stored within this.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.max_seconds IS 'The slowest.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.ready IS 'How many have all their attachments in a final state.';
COMMENT ON COLUMN intake_analytics.ingest_delay_daily.median_seconds_to_ready IS 'Half of those were complete with their attachments within this.';

COMMENT ON VIEW intake_analytics.job_seekers IS 'Jobseekers by what they did, without who they are: repeat applicants have applications > 1. One person may apply for one job several times.';
COMMENT ON COLUMN intake_analytics.job_seekers.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.job_seekers.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.job_seekers.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.job_seekers.jobs IS 'Different job references among them; ads without one do not count.';
COMMENT ON COLUMN intake_analytics.job_seekers.first_application_at IS 'When the first was made.';
COMMENT ON COLUMN intake_analytics.job_seekers.last_application_at IS 'When the last was made.';
COMMENT ON COLUMN intake_analytics.job_seekers.first_application_local IS 'The first on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.job_seekers.last_application_local IS 'The last on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.job_seekers.screens IS 'Screening questionnaires answered; an application may have several.';
COMMENT ON COLUMN intake_analytics.job_seekers.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake_analytics.job_seekers.screens_failed IS 'Of those, failed; the rest has no known outcome.';

COMMENT ON VIEW intake_analytics.jobs IS 'Jobs: how much interest, since when, still alive? One row per advertiser and job reference, all ads without a reference in one.';
COMMENT ON COLUMN intake_analytics.jobs.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.jobs.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.jobs.applications IS 'Applications.';
COMMENT ON COLUMN intake_analytics.jobs.first_application_at IS 'When the first was made.';
COMMENT ON COLUMN intake_analytics.jobs.last_application_at IS 'When the last was made.';
COMMENT ON COLUMN intake_analytics.jobs.first_application_local IS 'The first on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.jobs.last_application_local IS 'The last on the source''s clocks.';
COMMENT ON COLUMN intake_analytics.jobs.applications_last_7_days IS 'Applications in the seven days before as_of.';
COMMENT ON COLUMN intake_analytics.jobs.applications_28_days_before IS 'Applications in the four weeks before those seven days.';
COMMENT ON COLUMN intake_analytics.jobs.screens IS 'Screening questionnaires answered; null where none was, and for ads without a reference, which are many jobs in one row.';
COMMENT ON COLUMN intake_analytics.jobs.screens_passed IS 'Of those, passed.';
COMMENT ON COLUMN intake_analytics.jobs.screens_failed IS 'Of those, failed; the rest has no known outcome.';
COMMENT ON COLUMN intake_analytics.jobs.pass_rate IS 'Passed of those with a known outcome, from 0 to 1.';
COMMENT ON COLUMN intake_analytics.jobs.dried_up IS 'True where nobody applied in the last seven days though four or more did in the four weeks before.';
COMMENT ON COLUMN intake_analytics.jobs.as_of IS 'When the source was last read: the "now" of this row.';

COMMENT ON VIEW intake_analytics.prefill_funnel_daily IS 'From the button to the filled form, by the day of the click: where candidates are lost. Names nobody.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.day IS 'The day, at +10:00, on which the button was clicked.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.started IS 'Clicks on the button.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.authorized IS 'Candidates who came back with a code.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.denied IS 'Candidates who said no.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.prefilled IS 'Profiles that arrived.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.resume_stored IS 'Resumes that were stored.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.redeemed IS 'Profiles that the careers site fetched.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.failed IS 'Prefills that failed, at the source or with us.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.expired IS 'Prefills that came back too late, or never.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.lapsed IS 'Profiles that arrived and were never fetched.';

COMMENT ON VIEW intake_analytics.screening_answers IS 'Every answer that was offered, and whether it was chosen. What people typed is left out: screening_free_text has it.';
COMMENT ON COLUMN intake_analytics.screening_answers.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.screening_answers.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.screening_answers.screen_no IS 'Place among the application''s screens, from 1.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_no IS 'Place in the screen, from 1.';
COMMENT ON COLUMN intake_analytics.screening_answers.answer_no IS 'Place in the question, from 1.';
COMMENT ON COLUMN intake_analytics.screening_answers.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_answers.screen_name IS 'The advertiser''s name for the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_answers.outcome IS 'pass, fail or unknown: what the source made of the answers.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_id IS 'The source''s id of the question.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_type IS 'The source''s word: MultipleChoiceOneAnswer, MultipleChoiceManyAnswers, True/False, Text, URLQuestion, or another.';
COMMENT ON COLUMN intake_analytics.screening_answers.question_text IS 'The question.';
COMMENT ON COLUMN intake_analytics.screening_answers.answer_id IS 'The source''s id of the answer.';
COMMENT ON COLUMN intake_analytics.screening_answers.answer_text IS 'The answer offered; null for what a person typed.';
COMMENT ON COLUMN intake_analytics.screening_answers.selected IS 'Whether the jobseeker chose it.';
COMMENT ON COLUMN intake_analytics.screening_answers.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.screening_answers.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.screening_answers.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.screening_answers.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';

COMMENT ON VIEW intake_analytics.screening_free_text IS 'What people typed into screens: PERSONAL DATA. Text and URL questions, and types that Intake does not know.';
COMMENT ON COLUMN intake_analytics.screening_free_text.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.screening_free_text.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.screening_free_text.screen_no IS 'Place among the application''s screens, from 1.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_no IS 'Place in the screen, from 1.';
COMMENT ON COLUMN intake_analytics.screening_free_text.answer_no IS 'Place in the question, from 1.';
COMMENT ON COLUMN intake_analytics.screening_free_text.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_free_text.screen_name IS 'The advertiser''s name for the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_free_text.outcome IS 'pass, fail or unknown: what the source made of the answers.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_id IS 'The source''s id of the question.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_type IS 'The source''s word: MultipleChoiceOneAnswer, MultipleChoiceManyAnswers, True/False, Text, URLQuestion, or another.';
COMMENT ON COLUMN intake_analytics.screening_free_text.question_text IS 'The question.';
COMMENT ON COLUMN intake_analytics.screening_free_text.answer_text IS 'The text as typed.';
COMMENT ON COLUMN intake_analytics.screening_free_text.selected IS 'Whether the source marks it as entered.';
COMMENT ON COLUMN intake_analytics.screening_free_text.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.screening_free_text.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.screening_free_text.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.screening_free_text.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';

COMMENT ON VIEW intake_analytics.screening_outcomes IS 'Screens and their outcomes: who passes, by job, questionnaire and time. One row per screen answered.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.application_id IS 'The source''s id of the application; unique within an advertiser.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.screen_no IS 'Place among the application''s screens, from 1.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.screen_id IS 'The source''s id of the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.screen_name IS 'The advertiser''s name for the questionnaire.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.outcome IS 'pass, fail or unknown: what the source made of the answers.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.person_key IS 'Stands for the person: the same for all applications of one jobseeker at one advertiser, and no way back to the name. Null where the source names nobody.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.job_reference IS 'The advertiser''s own reference for the job ad; null where none was entered.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.submitted_at IS 'When the application was made.';
COMMENT ON COLUMN intake_analytics.screening_outcomes.submitted_local IS 'The same on the source''s clocks (Australian Eastern time).';

COMMENT ON VIEW intake_analytics.sweeps IS 'Sweeps of the list: what was requested, what came, and the certificate. Polls that found nothing new have no row.';
COMMENT ON COLUMN intake_analytics.sweeps.advertiser_id IS 'The source''s id of the account.';
COMMENT ON COLUMN intake_analytics.sweeps.sweep_id IS 'Counts sweeps; numbers may skip.';
COMMENT ON COLUMN intake_analytics.sweeps.lane IS 'live or backfill.';
COMMENT ON COLUMN intake_analytics.sweeps.purpose IS 'live, recheck, backfill or witness.';
COMMENT ON COLUMN intake_analytics.sweeps.axis IS 'id, or date: low and high are seconds since 1970 then.';
COMMENT ON COLUMN intake_analytics.sweeps.low IS 'First position of the range.';
COMMENT ON COLUMN intake_analytics.sweeps.high IS 'Last position of the range; null is no end.';
COMMENT ON COLUMN intake_analytics.sweeps.state IS 'running, closed (read to its end), open (ended with gaps left) or dropped.';
COMMENT ON COLUMN intake_analytics.sweeps.certificate IS 'proven, assumed or unproven, once ended.';
COMMENT ON COLUMN intake_analytics.sweeps.reason IS 'What the certificate rests on, or why there is none.';
COMMENT ON COLUMN intake_analytics.sweeps.started_at IS 'When its first request was sent.';
COMMENT ON COLUMN intake_analytics.sweeps.last_progress_at IS 'When its last answer was committed.';
COMMENT ON COLUMN intake_analytics.sweeps.ended_at IS 'When it ended.';
COMMENT ON COLUMN intake_analytics.sweeps.seconds IS 'How long it took, or runs already.';
COMMENT ON COLUMN intake_analytics.sweeps.requests IS 'Requests sent.';
COMMENT ON COLUMN intake_analytics.sweeps.received IS 'Applications returned, with repetitions.';
COMMENT ON COLUMN intake_analytics.sweeps.added IS 'Applications that were new.';
COMMENT ON COLUMN intake_analytics.sweeps.changed IS 'Applications that had changed.';
COMMENT ON COLUMN intake_analytics.sweeps.bytes IS 'Bytes of the answers.';
COMMENT ON COLUMN intake_analytics.sweeps.gaps IS 'Ranges that it left open.';

COMMENT ON FUNCTION intake.local_time(timestamptz, text) IS 'A time as the source''s clocks show it: by the offset written beside it (as +11:00), by +10:00 where none was. Unlike source_offset::interval it may stand in an index.';
