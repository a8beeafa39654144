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
CREATE TABLE "intake"."hash_trust" (
	"advertiser_id" bigint PRIMARY KEY NOT NULL,
	"agreed" integer DEFAULT 0 NOT NULL,
	"contradicted_at" timestamp with time zone,
	"unchanged" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
ALTER TABLE "intake"."attachments" ADD COLUMN "notes" jsonb;--> statement-breakpoint
ALTER TABLE "intake"."attachments" ADD COLUMN "linked" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."attachments" ADD COLUMN "parser_version" integer;--> statement-breakpoint
ALTER TABLE "intake"."downloads" ADD COLUMN "lapses" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."downloads" ADD COLUMN "trouble_kind" text;--> statement-breakpoint
CREATE INDEX "blobs_condemned" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."state" = 'condemned' AND "intake"."blobs"."emptied_at" IS NULL;--> statement-breakpoint
CREATE INDEX "blobs_orphaned" ON "intake"."blobs" USING btree ("advertiser_id","orphaned_at") WHERE "intake"."blobs"."orphaned_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attachment_versions_blob" ON "intake"."attachment_versions" USING btree ("advertiser_id","sha256") WHERE "intake"."attachment_versions"."sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attachments_blob" ON "intake"."attachments" USING btree ("advertiser_id","sha256") WHERE "intake"."attachments"."sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attachments_hash" ON "intake"."attachments" USING btree ("advertiser_id","source_hash") WHERE "intake"."attachments"."state" = 'stored' AND "intake"."attachments"."source_hash" IS NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."downloads" DROP COLUMN "leased_until";--> statement-breakpoint
ALTER TABLE "intake"."downloads" ADD CONSTRAINT "downloads_priority" CHECK ("intake"."downloads"."priority" IN (0, 1, 2));