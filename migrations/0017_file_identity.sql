-- A Hash may be longer than an index takes (2,704 bytes): its beginning is indexed, and compared whole after that. A Hash that changes at
-- every look is told from a change that means something (facts_hash). Objects are deleted between two transactions: a token on their row
-- keeps equal bytes from being put meanwhile.
ALTER TABLE "intake"."blobs" DROP CONSTRAINT "blobs_state";--> statement-breakpoint
DROP INDEX "intake"."blobs_condemned";--> statement-breakpoint
DROP INDEX "intake"."attachments_hash";--> statement-breakpoint
ALTER TABLE "intake"."applications" ADD COLUMN "facts_hash" "bytea";--> statement-breakpoint
ALTER TABLE "intake"."blobs" ADD COLUMN "delete_token" uuid;--> statement-breakpoint
ALTER TABLE "intake"."blobs" ADD COLUMN "delete_until" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "blobs_doomed" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."state" = 'condemned' AND "intake"."blobs"."emptied_at" IS NULL OR "intake"."blobs"."state" = 'deleting';--> statement-breakpoint
CREATE INDEX "attachments_hash" ON "intake"."attachments" USING btree ("advertiser_id",left("source_hash", 100)) WHERE "intake"."attachments"."state" = 'stored' AND "intake"."attachments"."source_hash" IS NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."blobs" ADD CONSTRAINT "blobs_deleting" CHECK ("intake"."blobs"."state" <> 'deleting' OR "intake"."blobs"."delete_token" IS NOT NULL);--> statement-breakpoint
ALTER TABLE "intake"."blobs" ADD CONSTRAINT "blobs_state" CHECK ("intake"."blobs"."state" IN ('writing', 'stored', 'damaged', 'condemned', 'deleting'));--> statement-breakpoint
COMMENT ON COLUMN intake.applications.facts_hash IS 'Fingerprint of the same without the Hash of attachments: where it is equal, nothing but Hash differs. Null on rows that an earlier release wrote and that have not changed since.';--> statement-breakpoint
COMMENT ON COLUMN intake.blobs.state IS 'writing (announced, not yet proven), stored, damaged (verify found other bytes or none), condemned (a virus: never kept) or deleting (nothing refers to them; the row goes with the object).';--> statement-breakpoint
COMMENT ON COLUMN intake.blobs.delete_token IS 'Who deletes the object at this moment; null where nobody does. Equal bytes are not put meanwhile.';--> statement-breakpoint
COMMENT ON COLUMN intake.blobs.delete_until IS 'When that lapses: the process died, and another one may delete or put.';--> statement-breakpoint
-- It stands for what a person wrote: Postgres keeps no values of it for its planner.
ALTER TABLE "intake"."applications" ALTER COLUMN "facts_hash" SET STATISTICS 0;
