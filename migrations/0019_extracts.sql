-- expand
CREATE TABLE "intake"."extracts" (
	"location" text NOT NULL,
	"with_people" boolean NOT NULL,
	"snapshot_id" text NOT NULL,
	"published_at" timestamp with time zone,
	CONSTRAINT "extracts_pkey" PRIMARY KEY("location")
);
--> statement-breakpoint
COMMENT ON TABLE intake.extracts IS 'The places that extracts were written to (intake extract).';
COMMENT ON COLUMN intake.extracts.location IS 'Where: a folder, or a bucket and prefix.';
COMMENT ON COLUMN intake.extracts.with_people IS 'A snapshot there may hold people''s columns, so an erasure must reach it.';
COMMENT ON COLUMN intake.extracts.snapshot_id IS 'The snapshot that was begun there last.';
COMMENT ON COLUMN intake.extracts.published_at IS 'When a snapshot was last published there; null where none was yet.';
--> statement-breakpoint
-- The text that is hashed is the same in every engine (intake compare --sql): digits, and the only free text last.
CREATE VIEW intake_analytics.fingerprints AS
SELECT f.advertiser_id, f.from_id, f.from_id + 65535 AS to_id, f.applications, f.fingerprint, v.name AS advertiser
FROM (
  SELECT a.advertiser_id, a.application_id - mod(a.application_id, 65536) AS from_id, count(*) AS applications,
    sum(('x' || substr(md5(concat_ws('|', a.application_id::text,
      coalesce(floor(extract(epoch FROM a.submitted_at) * 1000000)::bigint::text, ''),
      floor(extract(epoch FROM a.changed_at) * 1000000)::bigint::text,
      coalesce(a.screening_outcome, ''), coalesce(a.job_reference, ''))), 1, 15))::bit(60)::bigint)::text AS fingerprint
  FROM intake_analytics.applications_anonymous a
  GROUP BY a.advertiser_id, a.application_id - mod(a.application_id, 65536)
) AS f
LEFT JOIN intake.advertisers v ON v.advertiser_id = f.advertiser_id;
--> statement-breakpoint
COMMENT ON VIEW intake_analytics.fingerprints IS 'Whether a copy is complete: count and fingerprint of every range of 65,536 ids. intake compare --sql prints the statement that computes the same over a copy.';
COMMENT ON COLUMN intake_analytics.fingerprints.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake_analytics.fingerprints.from_id IS 'The first id of the range.';
COMMENT ON COLUMN intake_analytics.fingerprints.to_id IS 'The last id of the range.';
COMMENT ON COLUMN intake_analytics.fingerprints.applications IS 'How many applications are in the range; erased ones do not count.';
COMMENT ON COLUMN intake_analytics.fingerprints.fingerprint IS 'The sum of a hash of each application: id, time of submission, time of the last change, screening outcome, job reference. Order does not matter.';
COMMENT ON COLUMN intake_analytics.fingerprints.advertiser IS 'The advertiser''s configured name.';
