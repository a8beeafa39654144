-- A resume of a prefill is a blob like any other file. Where earlier releases kept resumes, under prefills/, nothing refers to them any
-- more; verify deletes these objects.
ALTER TABLE "intake"."prefills" DROP CONSTRAINT "prefills_resume";--> statement-breakpoint
UPDATE intake.prefills SET resume_sha256 = NULL, resume_size_bytes = NULL, resume_content_type = NULL, resume_file_name = NULL,
  resume_put_until = NULL, resume_reason = 'stored by an earlier release'
WHERE resume_sha256 IS NOT NULL AND outcome IN ('prefilled', 'redeemed', 'lapsed', 'erased');
--> statement-breakpoint
ALTER TABLE "intake"."blobs" ADD COLUMN "kept_versions" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "blobs_kept" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."kept_versions" > 0;--> statement-breakpoint
DROP INDEX "intake"."prefills_leaving";--> statement-breakpoint
DROP INDEX "intake"."blobs_to_delete";--> statement-breakpoint
CREATE INDEX "prefills_blob" ON "intake"."prefills" USING btree ("advertiser_id","resume_sha256") WHERE "intake"."prefills"."resume_sha256" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "blobs_to_delete" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."state" = 'infected' AND ("intake"."blobs"."deleted_at" IS NULL OR "intake"."blobs"."deleted_at" - "intake"."blobs"."intended_at" < interval '1 day') OR "intake"."blobs"."state" = 'deleting';--> statement-breakpoint
ALTER TABLE "intake"."prefills" ADD CONSTRAINT "prefills_resume" CHECK ("intake"."prefills"."resume_stored_at" IS NULL OR "intake"."prefills"."resume_sha256" IS NOT NULL OR "intake"."prefills"."resume_reason" IS NOT NULL OR "intake"."prefills"."outcome" IN ('lapsed', 'erased'));
--> statement-breakpoint
-- The counts are written with the rights of the schema's owner: the role of the public port adds blobs, and may not write counts.
DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT oid::regprocedure FROM pg_proc
    WHERE pronamespace = 'intake'::regnamespace AND (proname LIKE 'tally\_%' OR proname = 'fold_tallies')
  LOOP
    EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', f);
  END LOOP;
END $$;
--> statement-breakpoint
COMMENT ON COLUMN intake.prefills.resume_sha256 IS 'The resume''s blob in intake.blobs: the sha256 of its bytes, in hex.';
COMMENT ON COLUMN intake.prefills.resume_reason IS 'Why there is no resume, or none any more.';
COMMENT ON COLUMN intake.blobs.kept_versions IS 'How many versions of infected bytes the store kept when they were last deleted, because it does not let Intake delete them.';
