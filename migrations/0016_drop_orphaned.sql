-- Nothing has read or written it since orphans are known by the time at which they were last announced.
DROP INDEX "intake"."blobs_orphaned";
--> statement-breakpoint
ALTER TABLE "intake"."blobs" DROP COLUMN "orphaned_at";
