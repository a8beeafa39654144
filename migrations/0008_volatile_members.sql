CREATE TABLE "intake"."volatile_members" (
	"advertiser_id" bigint NOT NULL,
	"member" text NOT NULL,
	"seen" text[] NOT NULL,
	CONSTRAINT "volatile_members_pkey" PRIMARY KEY("advertiser_id","member")
);
--> statement-breakpoint
ALTER TABLE "intake"."applications" ADD COLUMN "members" jsonb;--> statement-breakpoint
ALTER TABLE "intake"."advertisers" ADD COLUMN "unkept" bigint;--> statement-breakpoint
ALTER TABLE "intake"."quarantine" ADD COLUMN "members" jsonb;--> statement-breakpoint
ALTER TABLE "intake"."quarantine" ADD COLUMN "person" "bytea";--> statement-breakpoint
ALTER TABLE "intake"."quarantine" ADD COLUMN "identity" "bytea";--> statement-breakpoint
CREATE INDEX "quarantine_person" ON "intake"."quarantine" USING btree ("advertiser_id","person");--> statement-breakpoint
-- Hashes of what a person wrote get no planner statistics, as in the baseline.
ALTER TABLE intake.applications ALTER COLUMN members SET STATISTICS 0;
ALTER TABLE intake.quarantine
  ALTER COLUMN members SET STATISTICS 0,
  ALTER COLUMN person SET STATISTICS 0,
  ALTER COLUMN identity SET STATISTICS 0;
--> statement-breakpoint
COMMENT ON TABLE intake.volatile_members IS 'Members that the spec does not name and that differed while everything else was equal. From three on, a difference in them is no change.';
COMMENT ON COLUMN intake.volatile_members.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.volatile_members.member IS 'The name of the member, with its path.';
COMMENT ON COLUMN intake.volatile_members.seen IS 'The first three applications, or elements in quarantine, for which it differed.';
COMMENT ON COLUMN intake.applications.members IS 'Members that the spec does not name, each with a hash of its value; null when there are none.';
COMMENT ON COLUMN intake.applications.facts_hash IS 'A fingerprint of the facts without Hash and Href of the attachments; where there are other members, followed by one of these two.';
COMMENT ON COLUMN intake.advertisers.unkept IS 'Elements of the list that were not kept, because the quarantine was full.';
COMMENT ON COLUMN intake.quarantine.fingerprint IS 'Identifies the element by its content without volatile members; the same element again counts up.';
COMMENT ON COLUMN intake.quarantine.members IS 'The members of the element, each with a hash of its value.';
COMMENT ON COLUMN intake.quarantine.person IS 'A hash of the members that say who applied for what.';
COMMENT ON COLUMN intake.quarantine.identity IS 'What an erasure remembers of the element, so that it does not come back.';
