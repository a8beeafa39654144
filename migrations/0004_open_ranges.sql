-- The key of body digests is deleted when somebody whom the proof shows is erased. Values that Postgres keeps for its planner would outlive it.
-- Setting the type, though it is the same, removes those that it has kept so far.
ALTER TABLE intake.sweeps ALTER COLUMN body_key TYPE bytea, ALTER COLUMN body_key SET STATISTICS 0;
--> statement-breakpoint
-- The highest id has no successor, so a range that ends there has no upper end here.
CREATE OR REPLACE VIEW intake.open_ranges AS
SELECT v.name AS advertiser, v.advertiser_id, lower(r) AS low, upper(r) - 1 AS high
FROM intake.advertisers v
-- Everything, less what is covered, plus the gaps of sweeps that ended. Upper ends are exclusive in ranges.
CROSS JOIN LATERAL unnest(int8multirange(int8range(1, NULL))
  - (SELECT coalesce(range_agg(int8range(k.low, nullif(k.high, 9223372036854775807) + 1)), '{}') FROM intake.coverage k
     WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id' AND k.certificate <> 'unproven')
  + (SELECT coalesce(range_agg(int8range(g.low, nullif(g.high, 9223372036854775807) + 1)), '{}') FROM intake.gaps g
     JOIN intake.sweeps s ON s.advertiser_id = g.advertiser_id AND s.sweep_id = g.sweep_id
     WHERE g.advertiser_id = v.advertiser_id AND g.axis = 'id' AND s.state = 'open')) AS r;
