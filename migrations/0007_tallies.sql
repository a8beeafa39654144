CREATE TABLE "intake"."tallies" (
	"advertiser_id" bigint NOT NULL,
	"tally_id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "intake"."tallies_tally_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"what" text NOT NULL,
	"n" bigint NOT NULL,
	CONSTRAINT "tallies_pkey" PRIMARY KEY("advertiser_id","tally_id")
);
--> statement-breakpoint
CREATE INDEX "blobs_damaged" ON "intake"."blobs" USING btree ("advertiser_id") WHERE "intake"."blobs"."state" = 'damaged';--> statement-breakpoint
CREATE INDEX "sweeps_running" ON "intake"."sweeps" USING btree ("advertiser_id") WHERE "intake"."sweeps"."state" = 'running';
--> statement-breakpoint
-- Replaces the rows of an account by their sums. Rows that another transaction replaces at the same time are left to it.
CREATE FUNCTION intake.fold_tallies(account bigint) RETURNS void LANGUAGE sql AS $$
  WITH folded AS (
    DELETE FROM intake.tallies WHERE advertiser_id = account AND tally_id IN
      (SELECT tally_id FROM intake.tallies WHERE advertiser_id = account FOR UPDATE SKIP LOCKED)
    RETURNING what, n
  )
  INSERT INTO intake.tallies (advertiser_id, what, n)
  SELECT account, what, sum(n) FROM folded GROUP BY what HAVING sum(n) <> 0
$$;
--> statement-breakpoint
-- What each row of a table counts for, once: the triggers and the view that counts everything again are made from it.
DO $make$
DECLARE
  counted record;
  change record;
  recounts text[] := '{}';
BEGIN
  FOR counted IN SELECT * FROM (VALUES
    ('applications', $$SELECT 'applications' AS what, 1 AS n WHERE r.erased_at IS NULL
      UNION ALL SELECT 'listed', 1 WHERE r.erased_at IS NULL AND r.missing_since IS NULL$$),
    ('attachments', $$SELECT 'attachments ' || r.state AS what, 1 AS n
      UNION ALL SELECT 'unread screens', 1 WHERE r.kind = 'screen' AND r.state = 'stored' AND r.parser_version IS NULL
      UNION ALL SELECT 'withheld', 1 WHERE r.reason = 'its virus flag (HasVirus) cannot be read'$$),
    ('blobs', $$SELECT 'blobs' AS what, 1 AS n WHERE r.state = 'stored'
      UNION ALL SELECT 'blob bytes', r.size_bytes WHERE r.state = 'stored'$$),
    ('downloads', $$SELECT 'downloads' AS what, 1 AS n
      UNION ALL SELECT 'downloads not there', 1 WHERE r.trouble_kind = 'missing'
      UNION ALL SELECT 'downloads suspect', 1 WHERE r.priority = 2$$)) AS v (name, facts)
  LOOP
    recounts := recounts || format('SELECT r.advertiser_id, f.what, sum(f.n)::bigint AS n FROM intake.%I r CROSS JOIN LATERAL (%s) AS f GROUP BY 1, 2',
      counted.name, counted.facts);
    FOR change IN SELECT * FROM (VALUES
      ('insert', 'NEW TABLE AS added', 'SELECT 1 AS sign, * FROM added'),
      ('delete', 'OLD TABLE AS removed', 'SELECT -1 AS sign, * FROM removed'),
      ('update', 'OLD TABLE AS removed NEW TABLE AS added', 'SELECT 1 AS sign, * FROM added UNION ALL SELECT -1, * FROM removed')) AS c (name, tables, rows)
    LOOP
      EXECUTE format($$
        CREATE FUNCTION intake.%1$I() RETURNS trigger LANGUAGE plpgsql AS $body$
        DECLARE
          account bigint;
        BEGIN
          INSERT INTO intake.tallies (advertiser_id, what, n)
          SELECT r.advertiser_id, f.what, sum(r.sign * f.n) FROM (%2$s) AS r CROSS JOIN LATERAL (%3$s) AS f
          GROUP BY 1, 2 HAVING sum(r.sign * f.n) <> 0;
          IF FOUND AND random() < 0.02 THEN
            FOR account IN SELECT DISTINCT advertiser_id FROM (%2$s) AS r LOOP
              PERFORM intake.fold_tallies(account);
            END LOOP;
          END IF;
          RETURN NULL;
        END $body$;
        CREATE TRIGGER tally_%4$s AFTER %4$s ON intake.%5$I REFERENCING %6$s FOR EACH STATEMENT EXECUTE FUNCTION intake.%1$I()$$,
        'tally_' || counted.name || '_' || change.name, change.rows, counted.facts, change.name, counted.name, change.tables);
    END LOOP;
  END LOOP;
  EXECUTE 'CREATE VIEW intake.recounted AS ' || array_to_string(recounts, ' UNION ALL ');
END $make$;
--> statement-breakpoint
COMMENT ON TABLE intake.tallies IS 'The counts that reports show, as rows to be summed up. Triggers write them in the transactions that change what is counted.';
--> statement-breakpoint
COMMENT ON COLUMN intake.tallies.tally_id IS 'Tells rows apart.';
--> statement-breakpoint
COMMENT ON COLUMN intake.tallies.advertiser_id IS 'The advertiser whose rows are counted.';
--> statement-breakpoint
COMMENT ON COLUMN intake.tallies.what IS 'What is counted, as in intake.recounted.';
--> statement-breakpoint
COMMENT ON COLUMN intake.tallies.n IS 'How many more, or fewer; the sum over all rows is the count.';
--> statement-breakpoint
COMMENT ON VIEW intake.recounted IS 'The same counts, counted again from all rows. Slow on a large account: intake verify --full compares the two.';
--> statement-breakpoint
COMMENT ON COLUMN intake.recounted.advertiser_id IS 'The advertiser whose rows are counted.';
--> statement-breakpoint
COMMENT ON COLUMN intake.recounted.what IS 'What is counted: applications that are not erased, those of them that the source should list, attachments by state, screens that could not be read, files withheld because their virus flag cannot be read, stored blobs and their bytes, queued downloads.';
--> statement-breakpoint
COMMENT ON COLUMN intake.recounted.n IS 'How many, counted now.';
--> statement-breakpoint
INSERT INTO intake.tallies (advertiser_id, what, n) SELECT advertiser_id, what, n FROM intake.recounted;
