-- A complete consumer of Intake's events in SQL only, for an ATS in the same database.
-- Run this file once. Then call this function from pg_cron or any scheduler; concurrent calls are safe:
--   SELECT ats.read_intake_events();
-- It returns how many rows it took; 0 means that there is nothing new. Every event reaches ats.inbox once and in order: the function writes
-- the rows and the position in one transaction.

-- CREATE SCHEMA IF NOT EXISTS needs the CREATE privilege even when the schema exists, so this checks first.
DO $$ BEGIN IF to_regnamespace('ats') IS NULL THEN CREATE SCHEMA ats; END IF; END $$;

CREATE TABLE IF NOT EXISTS ats.inbox (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  advertiser_id bigint, event_id bigint, application_id bigint, type text,
  UNIQUE (advertiser_id, event_id)
);

CREATE TABLE IF NOT EXISTS ats.intake_positions (
  consumer text, advertiser_id bigint, event_id bigint NOT NULL DEFAULT 0, at timestamptz, PRIMARY KEY (consumer, advertiser_id)
);

CREATE OR REPLACE FUNCTION ats.read_intake_events(reader text DEFAULT 'ats', batch_size int DEFAULT 500) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  place record;
  newest bigint;
  taken bigint;
  total bigint := 0;
BEGIN
  INSERT INTO ats.intake_positions (consumer, advertiser_id)
  SELECT reader, v.advertiser_id FROM intake.advertisers v WHERE v.advertiser_id IS NOT NULL
  ON CONFLICT DO NOTHING;

  -- Skips a position that another call is working on.
  FOR place IN
    SELECT p.advertiser_id, p.event_id, p.at FROM ats.intake_positions p WHERE p.consumer = reader ORDER BY 1 FOR UPDATE SKIP LOCKED
  LOOP
    -- Takes a snapshot of all applications at the start, when the event at the position was pruned, or when it has another time because the
    -- database was restored from a backup. If you have an application that is not in the snapshot, it was erased or is gone at the source
    -- and you missed the event: erase your copy. Events are numbered in commit order, so everything up to `newest` is visible to the next
    -- statement, and everything later has a higher number.
    IF NOT EXISTS (SELECT 1 FROM intake.events e
                   WHERE e.advertiser_id = place.advertiser_id AND e.event_id = place.event_id AND e.at = place.at) THEN
      SELECT max(e.event_id) INTO newest FROM intake.events e WHERE e.advertiser_id = place.advertiser_id;
      CONTINUE WHEN newest IS NULL;
      INSERT INTO ats.inbox (advertiser_id, application_id, type)
      SELECT a.advertiser_id, a.application_id, 'snapshot' FROM intake.applications a
      WHERE a.advertiser_id = place.advertiser_id AND a.erased_at IS NULL AND a.missing_since IS NULL;
      GET DIAGNOSTICS taken = ROW_COUNT;
      RAISE NOTICE 'advertiser %: took % applications as they stand, now at event %', place.advertiser_id, taken, newest;
    ELSE
      -- Put your own work here, instead of the INSERT. The statement that reads the batch checks again that the event at the position still
      -- exists: if it was pruned meanwhile, the statement takes nothing, and the next call starts over.
      WITH batch AS (
        SELECT e.advertiser_id, e.event_id, e.application_id, e.type FROM intake.events e
        WHERE e.advertiser_id = place.advertiser_id AND e.event_id > place.event_id
          AND EXISTS (SELECT 1 FROM intake.events here WHERE here.advertiser_id = place.advertiser_id AND here.event_id = place.event_id)
        ORDER BY e.event_id LIMIT batch_size
      ), done AS (
        INSERT INTO ats.inbox (advertiser_id, event_id, application_id, type)
        SELECT b.advertiser_id, b.event_id, b.application_id, b.type FROM batch b ORDER BY b.event_id
      )
      SELECT max(event_id), count(*) INTO newest, taken FROM batch;
    END IF;
    total := total + taken;
    UPDATE ats.intake_positions p SET event_id = e.event_id, at = e.at FROM intake.events e
    WHERE p.consumer = reader AND p.advertiser_id = place.advertiser_id
      AND e.advertiser_id = place.advertiser_id AND e.event_id = newest;
  END LOOP;
  RETURN total;
END $$;
