-- Reads the latest snapshot of an extract with DuckDB, under the names of docs/analyse.md.
-- duckdb -cmd "SET VARIABLE extract = '/data/intake'" -init examples/extract/duckdb.sql     (or 's3://bucket/prefix', with httpfs)
SET integer_division = true;
SET VARIABLE manifest = getvariable('extract') || '/' || (SELECT manifest FROM read_json(getvariable('extract') || '/latest.json'));

CREATE TEMP TABLE manifest AS SELECT * FROM read_json(getvariable('manifest'), maximum_object_size = 268435456);
CREATE TEMP TABLE files AS
SELECT file.view AS view, getvariable('extract') || '/' || file.path AS path FROM (SELECT unnest(files) AS file FROM manifest);

-- What is proven of it.
SELECT a.name, a.certificate, a.risk, a.complete_through, len(a.open_ranges) AS open_ranges FROM (SELECT unnest(advertisers) AS a FROM manifest);

-- The same three lines for every other view.
CREATE SCHEMA IF NOT EXISTS intake_analytics;
SET VARIABLE applications_anonymous = (SELECT list(path) FROM files WHERE view = 'applications_anonymous');
CREATE VIEW intake_analytics.applications_anonymous AS SELECT * FROM read_parquet(getvariable('applications_anonymous'));
SET VARIABLE jobs = (SELECT list(path) FROM files WHERE view = 'jobs');
CREATE VIEW intake_analytics.jobs AS SELECT * FROM read_parquet(getvariable('jobs'));
