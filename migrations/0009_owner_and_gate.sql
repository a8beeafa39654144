ALTER TABLE "intake"."blob_store" ALTER COLUMN "identity" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."blob_store" ALTER COLUMN "location" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."blob_store" ADD COLUMN "database_id" uuid DEFAULT gen_random_uuid() NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."blob_store" ADD COLUMN "next_identity" text;--> statement-breakpoint
ALTER TABLE "intake"."erasures" ADD COLUMN "future" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "kept_out" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "erasures_future" ON "intake"."erasures" USING btree ("advertiser_id") WHERE "intake"."erasures"."future";--> statement-breakpoint
-- Requests by address and by account become tombstones: from now on they also keep out elements without a usable id.
INSERT INTO intake.erasures (advertiser_id, tombstone, job_id, erased_at)
SELECT DISTINCT ON (advertiser_id, sought) advertiser_id, sought, job_id, requested_at FROM intake.erasure_jobs
WHERE sought_by IN ('address', 'jobseeker') ORDER BY advertiser_id, sought, requested_at DESC
ON CONFLICT (advertiser_id, tombstone) DO UPDATE SET erased_at = greatest(erasures.erased_at, excluded.erased_at);
--> statement-breakpoint
COMMENT ON TABLE intake.blob_store IS 'The id of this database, and the one store of blobs that it owns; another one is refused.';
COMMENT ON COLUMN intake.blob_store.database_id IS 'The random id of this database. A copy of the database has the same one.';
COMMENT ON COLUMN intake.blob_store.identity IS 'The text of the store''s identity object, with the id of its owner and an epoch. Null before the first use of a store. A store with another text is refused.';
COMMENT ON COLUMN intake.blob_store.next_identity IS 'The text that a process is about to write into the store to take it; null otherwise.';
COMMENT ON COLUMN intake.blob_store.location IS 'Where the store was when this database took it.';
COMMENT ON COLUMN intake.blob_store.pinned_at IS 'When this database took the store.';
COMMENT ON COLUMN intake.erasures.future IS 'Also keeps out applications of this account or address that were never read before (--and-future).';
COMMENT ON COLUMN intake.advertisers.kept_out IS 'How often an application, an element or a prefill of an erased person was kept out. Nothing else is kept of them.';
