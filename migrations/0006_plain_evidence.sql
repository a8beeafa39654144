-- Evidence becomes plain lines, and a sweep keeps only its open ranges. What earlier versions recorded cannot be continued or checked with
-- the new rules: it is dropped. Certificates stay; their evidence comes with the next recheck.
DELETE FROM intake.evidence;
--> statement-breakpoint
UPDATE intake.coverage SET evidence_hash = NULL WHERE evidence_hash IS NOT NULL;
--> statement-breakpoint
UPDATE intake.sweeps SET state = 'dropped', facts = '{}', ended_at = now() WHERE state = 'running';
--> statement-breakpoint
DELETE FROM intake.ranges r USING intake.sweeps s
WHERE s.advertiser_id = r.advertiser_id AND s.sweep_id = r.sweep_id AND (s.state = 'dropped' OR r.state = 'closed');
--> statement-breakpoint
UPDATE intake.advertisers SET learned = '{}' WHERE learned <> '{}';
--> statement-breakpoint
CREATE TABLE "intake"."lacked" (
	"advertiser_id" bigint NOT NULL,
	"sweep_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"gone" boolean NOT NULL,
	CONSTRAINT "lacked_pkey" PRIMARY KEY("advertiser_id","sweep_id","application_id")
);
--> statement-breakpoint
CREATE TABLE "intake"."unreadable" (
	"advertiser_id" bigint NOT NULL,
	"application_id" bigint NOT NULL,
	"reason" text NOT NULL,
	"since" timestamp with time zone DEFAULT now() NOT NULL,
	"tries" integer DEFAULT 1 NOT NULL,
	"next_at" timestamp with time zone NOT NULL,
	"accepted_at" timestamp with time zone,
	"accepted_by" text,
	CONSTRAINT "unreadable_pkey" PRIMARY KEY("advertiser_id","application_id")
);
--> statement-breakpoint
ALTER TABLE "intake"."ranges" DROP CONSTRAINT "ranges_state";--> statement-breakpoint
ALTER TABLE "intake"."evidence" ADD COLUMN "line" text NOT NULL;--> statement-breakpoint
ALTER TABLE "intake"."lacked" ADD CONSTRAINT "lacked_sweep" FOREIGN KEY ("advertiser_id","sweep_id") REFERENCES "intake"."sweeps"("advertiser_id","sweep_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "intake"."evidence" DROP COLUMN "record";--> statement-breakpoint
ALTER TABLE "intake"."evidence" DROP COLUMN "leaves";--> statement-breakpoint
ALTER TABLE "intake"."evidence" DROP COLUMN "lowest_id";--> statement-breakpoint
ALTER TABLE "intake"."evidence" DROP COLUMN "highest_id";--> statement-breakpoint
ALTER TABLE "intake"."evidence" DROP COLUMN "hash";--> statement-breakpoint
ALTER TABLE "intake"."sweeps" DROP COLUMN "body_key";--> statement-breakpoint
ALTER TABLE "intake"."ranges" ADD CONSTRAINT "ranges_state" CHECK ("intake"."ranges"."state" IN ('open', 'stuck'));
--> statement-breakpoint
-- What is open: everything, less what is covered, plus the gaps of sweeps that ended; and ids that cannot be read and were not accepted,
-- each as a range of its own. Upper ends are exclusive in ranges; the highest id has no successor, so a range that ends there has no upper end.
CREATE OR REPLACE VIEW intake.open_ranges AS
WITH unread AS (
  SELECT v.name AS advertiser, v.advertiser_id, lower(r) AS low, upper(r) - 1 AS high
  FROM intake.advertisers v
  CROSS JOIN LATERAL unnest(int8multirange(int8range(1, NULL))
    - (SELECT coalesce(range_agg(int8range(k.low, nullif(k.high, 9223372036854775807) + 1)), '{}') FROM intake.coverage k
       WHERE k.advertiser_id = v.advertiser_id AND k.axis = 'id' AND k.certificate <> 'unproven')
    + (SELECT coalesce(range_agg(int8range(g.low, nullif(g.high, 9223372036854775807) + 1)), '{}') FROM intake.gaps g
       JOIN intake.sweeps s ON s.advertiser_id = g.advertiser_id AND s.sweep_id = g.sweep_id
       WHERE g.advertiser_id = v.advertiser_id AND g.axis = 'id' AND s.state = 'open')) AS r
)
SELECT advertiser, advertiser_id, low, high FROM unread
UNION ALL
SELECT v.name, u.advertiser_id, u.application_id, u.application_id
FROM intake.unreadable u JOIN intake.advertisers v ON v.advertiser_id = u.advertiser_id
WHERE u.accepted_at IS NULL AND NOT EXISTS (SELECT 1 FROM unread o
  WHERE o.advertiser_id = u.advertiser_id AND o.low <= u.application_id AND (o.high IS NULL OR o.high >= u.application_id));
--> statement-breakpoint
-- Columns of views are only ever added. An id that cannot be read is an open range of its own: the certificate is "all but" that id.
CREATE OR REPLACE VIEW intake_analytics.completeness AS
SELECT v.name AS advertiser, v.advertiser_id,
  CASE WHEN open.unread > 0 THEN 'unproven' WHEN open.ranges > 0 AND weakest.certificate = 'proven' THEN 'assumed'
       ELSE coalesce(weakest.certificate, 'unproven') END AS certificate,
  CASE WHEN weakest.certificate = 'unproven' THEN weakest.reason
       WHEN weakest.certificate IS NULL THEN 'nothing was read to its end yet'
       WHEN open.unread > 0 THEN 'some ids were never read to their end'
       WHEN open.ranges > 0 AND weakest.risk <> 'doubt' THEN format('all but %s that could not be read', CASE open.ranges WHEN 1 THEN 'one id' ELSE open.ranges || ' ids' END)
       ELSE weakest.reason END AS reason,
  CASE WHEN open.unread = 0 THEN weakest.complete_through END AS complete_through,
  weakest.as_of, open.ranges AS open_ranges, c.as_of AS polled_at, v.late_ms AS lateness_ms,
  'The source applies both id filters before it cuts a page off, and takes nothing out of a page afterwards; within one sweep, every page has room for at least half of the rows and three quarters of the bytes of any other, and no application fills a quarter of a page; every answer comes from one current list (no cache, no stale replica, no default window, no grouping by person).' AS assumptions,
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
  SELECT count(*)::int AS ranges, count(*) FILTER (WHERE NOT EXISTS (
    SELECT 1 FROM intake.unreadable u WHERE u.advertiser_id = o.advertiser_id AND u.application_id = o.low AND o.high = o.low))::int AS unread
  FROM intake.open_ranges o WHERE o.advertiser = v.name) AS open;
--> statement-breakpoint
COMMENT ON TABLE intake.evidence IS 'What was asked for a proof and what was answered: one line of JSON per question, which intake prove exports as it is (docs/proof-format.md). Ids, no other personal data.';
COMMENT ON COLUMN intake.evidence.n IS 'Place in the chain of its sweep, from 0.';
COMMENT ON COLUMN intake.evidence.line IS 'The line, with the SHA-256 of the line before it.';
COMMENT ON COLUMN intake.coverage.evidence_hash IS 'SHA-256 of the last line of evidence behind it; null where none was kept. Noted elsewhere, it shows later whether the evidence is the same.';
COMMENT ON TABLE intake.ranges IS 'The ranges that a running sweep has not closed; afterwards those that it left open. All other ids of its range are closed.';
COMMENT ON COLUMN intake.ranges.state IS 'open, or stuck: can neither be split nor closed.';
COMMENT ON COLUMN intake.ranges.evidence IS 'The answer that it was cut from, to continue after a stop.';
COMMENT ON TABLE intake.lacked IS 'Stored ids that answers of a running sweep have lacked.';
COMMENT ON COLUMN intake.lacked.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.lacked.sweep_id IS 'The sweep.';
COMMENT ON COLUMN intake.lacked.application_id IS 'The application.';
COMMENT ON COLUMN intake.lacked.gone IS 'Two answers that had room for it have lacked it.';
COMMENT ON TABLE intake.unreadable IS 'Applications that the source fails to show while it shows others. Each is an open range of one id and is requested again.';
COMMENT ON COLUMN intake.unreadable.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.unreadable.application_id IS 'The id for which the source fails. Whether an application has this id is not known.';
COMMENT ON COLUMN intake.unreadable.reason IS 'The last trouble.';
COMMENT ON COLUMN intake.unreadable.since IS 'When it failed first.';
COMMENT ON COLUMN intake.unreadable.tries IS 'How often it was requested alone.';
COMMENT ON COLUMN intake.unreadable.next_at IS 'When it is requested again.';
COMMENT ON COLUMN intake.unreadable.accepted_at IS 'When an operator accepted that it cannot be read; null otherwise.';
COMMENT ON COLUMN intake.unreadable.accepted_by IS 'Who accepted it.';
