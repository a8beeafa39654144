-- An infected object is deleted again while a put of it may still be under way: the index holds those blobs too.
DROP INDEX "intake"."blobs_doomed";--> statement-breakpoint
CREATE INDEX "blobs_doomed" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."state" = 'condemned' AND ("intake"."blobs"."emptied_at" IS NULL OR "intake"."blobs"."emptied_at" - "intake"."blobs"."intended_at" < interval '10 minutes') OR "intake"."blobs"."state" = 'deleting';--> statement-breakpoint
COMMENT ON COLUMN intake.applications.facts_hash IS 'Fingerprint of the same without Hash and Href of attachments: where it is equal, nothing but these differs. Null on rows that an earlier release wrote and that have not changed since.';
