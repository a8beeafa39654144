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
	"resume_sha256" text,
	"resume_size_bytes" bigint,
	"resume_content_type" text,
	"resume_file_name" text,
	"resume_reason" text,
	"handle_hash" "bytea",
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"authorized_at" timestamp with time zone,
	"prefilled_at" timestamp with time zone,
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
ALTER TABLE "intake"."oauth_states" ADD CONSTRAINT "oauth_states_prefill" FOREIGN KEY ("advertiser_id","prefill_id") REFERENCES "intake"."prefills"("advertiser_id","prefill_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "oauth_states_expires" ON "intake"."oauth_states" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "prefills_created" ON "intake"."prefills" USING btree ("advertiser_id","created_at");--> statement-breakpoint
CREATE INDEX "prefills_person" ON "intake"."prefills" USING btree ("advertiser_id","person_key");--> statement-breakpoint
CREATE INDEX "prefills_open" ON "intake"."prefills" USING btree ("created_at") WHERE "intake"."prefills"."outcome" IN ('started', 'prefilled');--> statement-breakpoint
CREATE INDEX "prefills_leaving" ON "intake"."prefills" USING btree ("created_at") WHERE "intake"."prefills"."outcome" IN ('lapsed', 'erased') AND "intake"."prefills"."resume_sha256" IS NOT NULL;