ALTER TABLE "intake"."coverage" ADD COLUMN "risk" text;--> statement-breakpoint
UPDATE "intake"."coverage" SET "risk" = CASE "certificate" WHEN 'proven' THEN 'none' WHEN 'assumed' THEN 'harmless' ELSE 'doubt' END;--> statement-breakpoint
ALTER TABLE "intake"."coverage" ALTER COLUMN "risk" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."sweeps" ADD COLUMN "risk" text;--> statement-breakpoint
ALTER TABLE "intake"."coverage" ADD CONSTRAINT "coverage_risk" CHECK ("intake"."coverage"."risk" IN ('none', 'harmless', 'doubt'));--> statement-breakpoint
ALTER TABLE "intake"."sweeps" ADD CONSTRAINT "sweeps_risk" CHECK ("intake"."sweeps"."risk" IN ('none', 'harmless', 'doubt'));--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.completeness AS
SELECT v.name AS advertiser, v.advertiser_id,
  CASE WHEN open.ranges > 0 THEN 'unproven' ELSE coalesce(weakest.certificate, 'unproven') END AS certificate,
  CASE WHEN weakest.certificate = 'unproven' THEN weakest.reason
       WHEN weakest.certificate IS NULL THEN 'nothing was read to its end yet'
       WHEN open.ranges > 0 THEN 'some ids were never read to their end' ELSE weakest.reason END AS reason,
  CASE WHEN open.ranges = 0 THEN weakest.complete_through END AS complete_through,
  weakest.as_of, open.ranges AS open_ranges, c.as_of AS polled_at, v.late_ms AS lateness_ms,
  'The source applies both id filters before it cuts a page off; what fits into a page, by count or by bytes, does not shrink below half within one sweep; every answer comes from one current list (no cache, no stale replica, no default window, no grouping by person).' AS assumptions,
  CASE WHEN open.ranges > 0 THEN 'doubt' ELSE coalesce(weakest.risk, 'doubt') END AS risk
FROM intake.advertisers v
LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
LEFT JOIN LATERAL (
  SELECT k.certificate, k.risk, k.reason, min(k.as_of) OVER () AS as_of, min(k.complete_through) OVER () AS complete_through
  FROM intake.coverage k WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id'
  ORDER BY array_position(ARRAY['unproven', 'assumed', 'proven'], k.certificate),
    array_position(ARRAY['doubt', 'harmless', 'none'], k.risk), k.as_of LIMIT 1) AS weakest ON true
CROSS JOIN LATERAL (
  SELECT count(*)::int AS ranges FROM intake.open_ranges o WHERE o.advertiser = v.name) AS open;--> statement-breakpoint
COMMENT ON COLUMN intake.coverage.risk IS 'What stands against the certificate: none, something harmless (too few applications to tell, say), or a real doubt.';--> statement-breakpoint
COMMENT ON COLUMN intake.sweeps.risk IS 'What stands against the certificate: none, harmless or doubt; null until the sweep has ended.';--> statement-breakpoint
COMMENT ON COLUMN intake_analytics.completeness.risk IS 'What stands against the certificate: none, harmless, or doubt. Do not rely on completeness where it is doubt.';
