-- Stored bytes that no time was kept for count from when they were announced.
UPDATE intake.blobs SET verified_at = intended_at WHERE state = 'stored' AND verified_at IS NULL;--> statement-breakpoint
CREATE INDEX "blobs_unread" ON "intake"."blobs" USING btree ("advertiser_id","verified_at") WHERE "intake"."blobs"."state" = 'stored';--> statement-breakpoint
ALTER TABLE "intake"."blobs" ADD CONSTRAINT "blobs_verified" CHECK ("intake"."blobs"."state" <> 'stored' OR "intake"."blobs"."verified_at" IS NOT NULL);--> statement-breakpoint
COMMENT ON COLUMN intake.blobs.verified_at IS 'When the bytes were last read and were right, by verify; before that, when they were stored and proven.';
