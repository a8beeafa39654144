CREATE TABLE "intake"."audit" (
	"advertiser_id" bigint NOT NULL,
	"audit_id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "intake"."audit_audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"action" text NOT NULL,
	"application_id" bigint,
	"by" text NOT NULL,
	"facts" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "audit_pkey" PRIMARY KEY("advertiser_id","audit_id")
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
	"quiet_at" timestamp with time zone NOT NULL,
	"application_ids" bigint[],
	"hashes" text[],
	"counts" jsonb NOT NULL,
	"looks" integer DEFAULT 0 NOT NULL,
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
DROP INDEX "intake"."applications_job";--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "retention_due" bigint;--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "erased_through" bigint;--> statement-breakpoint
ALTER TABLE "intake"."downloads" ADD COLUMN "sha256" text;--> statement-breakpoint
CREATE INDEX "audit_application" ON "intake"."audit" USING btree ("advertiser_id","application_id") WHERE "intake"."audit"."application_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "erasure_jobs_open" ON "intake"."erasure_jobs" USING btree ("advertiser_id","requested_at") WHERE "intake"."erasure_jobs"."closed_at" IS NULL;--> statement-breakpoint
CREATE INDEX "downloads_blob" ON "intake"."downloads" USING btree ("advertiser_id","sha256") WHERE "intake"."downloads"."sha256" IS NOT NULL;