ALTER TABLE "intake"."advertisers" ADD COLUMN "erased_through" bigint;--> statement-breakpoint
COMMENT ON COLUMN intake.advertisers.erased_through IS 'The highest id of an erased application: only ids up to it are compared with the tombstones. Null while nobody was erased.';
