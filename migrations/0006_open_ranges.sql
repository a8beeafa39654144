-- What is open is reckoned in one place: `intake backfill --gaps` reads these ranges, and completeness counts them.
CREATE VIEW intake.open_ranges AS
SELECT v.name AS advertiser, v.advertiser_id, lower(r) AS low, upper(r) - 1 AS high
FROM intake.advertisers v
-- Everything, less what is covered, plus the gaps of readings that ended. Upper ends are exclusive in ranges.
CROSS JOIN LATERAL unnest(int8multirange(int8range(1, NULL))
  - (SELECT coalesce(range_agg(int8range(k.low, k.high + 1)), '{}') FROM intake.coverage k
     WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id' AND k.certificate <> 'unproven')
  + (SELECT coalesce(range_agg(int8range(g.low, g.high + 1)), '{}') FROM intake.gaps g
     JOIN intake.sweeps s ON s.advertiser_id = g.advertiser_id AND s.sweep_id = g.sweep_id
     WHERE g.advertiser_id = v.advertiser_id AND g.axis = 'id' AND s.state = 'open')) AS r;
--> statement-breakpoint
COMMENT ON VIEW intake.open_ranges IS 'Ranges of ids that nothing vouches for: never read, read without a certificate, or left as a gap.';
COMMENT ON COLUMN intake.open_ranges.advertiser IS 'The name given in the configuration.';
COMMENT ON COLUMN intake.open_ranges.advertiser_id IS 'The source''s id of the account; null until it is learned.';
COMMENT ON COLUMN intake.open_ranges.low IS 'First id of the range.';
COMMENT ON COLUMN intake.open_ranges.high IS 'Last id of the range; null is no end.';
--> statement-breakpoint
CREATE OR REPLACE VIEW intake_analytics.completeness AS
SELECT v.name AS advertiser, v.advertiser_id,
  CASE WHEN open.ranges > 0 THEN 'unproven' ELSE coalesce(weakest.certificate, 'unproven') END AS certificate,
  CASE WHEN weakest.certificate = 'unproven' THEN weakest.reason
       WHEN weakest.certificate IS NULL THEN 'nothing was read to its end yet'
       WHEN open.ranges > 0 THEN 'some ids were never read to their end' ELSE weakest.reason END AS reason,
  CASE WHEN open.ranges = 0 THEN weakest.complete_through END AS complete_through,
  weakest.as_of, open.ranges AS open_ranges, c.as_of AS polled_at, v.late_ms AS lateness_ms,
  'The source applies both id filters before it cuts a page off; what fits into a page does not shrink below half within one reading.' AS assumptions
FROM intake.advertisers v
LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
LEFT JOIN LATERAL (
  SELECT k.certificate, k.reason, min(k.as_of) OVER () AS as_of, min(k.complete_through) OVER () AS complete_through
  FROM intake.coverage k WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id'
  ORDER BY array_position(ARRAY['unproven', 'assumed', 'proven'], k.certificate), k.as_of LIMIT 1) AS weakest ON true
CROSS JOIN LATERAL (
  SELECT count(*)::int AS ranges FROM intake.open_ranges o WHERE o.advertiser = v.name) AS open;
