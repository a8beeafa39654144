CREATE TABLE "intake"."evidence" (
	"advertiser_id" bigint NOT NULL,
	"sweep_id" bigint NOT NULL,
	"n" integer NOT NULL,
	"record" "bytea" NOT NULL,
	"leaves" "bytea",
	"lowest_id" bigint,
	"highest_id" bigint,
	"hash" "bytea" NOT NULL,
	CONSTRAINT "evidence_pkey" PRIMARY KEY("advertiser_id","sweep_id","n")
);
--> statement-breakpoint
ALTER TABLE "intake"."coverage" ADD COLUMN "evidence_hash" "bytea";--> statement-breakpoint
ALTER TABLE "intake"."sweeps" ADD COLUMN "body_key" "bytea";--> statement-breakpoint
ALTER TABLE "intake"."evidence" ADD CONSTRAINT "evidence_sweep" FOREIGN KEY ("advertiser_id","sweep_id") REFERENCES "intake"."sweeps"("advertiser_id","sweep_id") ON DELETE no action ON UPDATE no action;
--> statement-breakpoint
-- Values that Postgres keeps for its planner would outlive an erasure.
ALTER TABLE intake.evidence
  ALTER COLUMN record SET STATISTICS 0,
  ALTER COLUMN leaves SET STATISTICS 0,
  ALTER COLUMN hash SET STATISTICS 0;
--> statement-breakpoint
-- Columns of views are only ever added.
CREATE OR REPLACE VIEW intake_analytics.completeness AS
SELECT v.name AS advertiser, v.advertiser_id,
  CASE WHEN open.ranges > 0 THEN 'unproven' ELSE coalesce(weakest.certificate, 'unproven') END AS certificate,
  CASE WHEN weakest.certificate = 'unproven' THEN weakest.reason
       WHEN weakest.certificate IS NULL THEN 'nothing was read to its end yet'
       WHEN open.ranges > 0 THEN 'some ids were never read to their end' ELSE weakest.reason END AS reason,
  CASE WHEN open.ranges = 0 THEN weakest.complete_through END AS complete_through,
  weakest.as_of, open.ranges AS open_ranges, c.as_of AS polled_at, v.late_ms AS lateness_ms,
  'The source applies both id filters before it cuts a page off; what fits into a page, by count or by bytes, does not shrink below half within one sweep, and no application fills a quarter of it; every answer comes from one current list (no cache, no stale replica, no default window, no grouping by person).' AS assumptions,
  CASE WHEN open.ranges > 0 THEN 'doubt' ELSE coalesce(weakest.risk, 'doubt') END AS risk,
  (SELECT array_agg(p.note ORDER BY p.low) FROM (
     SELECT min(k.low) AS low, k.sweep_id || ':' || encode(k.evidence_hash, 'hex') AS note FROM intake.coverage k
     WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id' AND k.evidence_hash IS NOT NULL GROUP BY note) AS p) AS evidence
FROM intake.advertisers v
LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
LEFT JOIN LATERAL (
  SELECT k.certificate, k.risk, k.reason, min(k.as_of) OVER () AS as_of, min(k.complete_through) OVER () AS complete_through
  FROM intake.coverage k WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id'
  ORDER BY array_position(ARRAY['unproven', 'assumed', 'proven'], k.certificate),
    array_position(ARRAY['doubt', 'harmless', 'none'], k.risk), k.as_of LIMIT 1) AS weakest ON true
CROSS JOIN LATERAL (
  SELECT count(*)::int AS ranges FROM intake.open_ranges o WHERE o.advertiser = v.name) AS open;
--> statement-breakpoint
COMMENT ON TABLE intake.evidence IS 'What was asked for a proof and what was answered: one chain of records per sweep, in a binary form that intake prove exports plainly (docs/proof-format.md).';
COMMENT ON COLUMN intake.evidence.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.evidence.sweep_id IS 'The sweep whose proof it is.';
COMMENT ON COLUMN intake.evidence.n IS 'Place in the chain, from 0.';
COMMENT ON COLUMN intake.evidence.record IS 'The question, its answer without the applications, and what followed.';
COMMENT ON COLUMN intake.evidence.leaves IS 'The applications of the answer: ids, seconds and marks, of erased ones a hash.';
COMMENT ON COLUMN intake.evidence.lowest_id IS 'The lowest application id among the leaves; null without any.';
COMMENT ON COLUMN intake.evidence.highest_id IS 'The highest application id among the leaves; null without any.';
COMMENT ON COLUMN intake.evidence.hash IS 'SHA-256 over the hash before it and this record.';
COMMENT ON COLUMN intake.coverage.evidence_hash IS 'The last hash of the evidence behind it; null where none was kept. Noted elsewhere, it shows later whether the evidence is the same.';
COMMENT ON COLUMN intake.sweeps.body_key IS 'Key of the body digests in its evidence; deleted with the first erasure of somebody whom it shows.';
COMMENT ON COLUMN intake_analytics.completeness.evidence IS 'The last hash of the evidence of each sweep behind it, as SWEEP:HASH. Noted elsewhere, it shows later whether the evidence is the same.';
