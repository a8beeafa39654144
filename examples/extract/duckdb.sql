-- Reads an extract with DuckDB: a view for each view of intake_analytics, over the files of the latest snapshot.
-- duckdb -cmd "SET VARIABLE extract = '/data/intake'" -f examples/extract/duckdb.sql     (or 's3://bucket/prefix', with httpfs and a secret)
CREATE SCHEMA IF NOT EXISTS intake_analytics;

SET VARIABLE manifest = getvariable('extract') || '/' || (SELECT manifest FROM read_json(getvariable('extract') || '/latest.json'));

CREATE OR REPLACE TABLE extract_files AS
SELECT file.view AS view, getvariable('extract') || '/' || file.path AS path, file.rows AS rows
FROM (SELECT unnest(files) AS file FROM read_json(getvariable('manifest'), maximum_object_size = 268435456));

-- What is proven of the snapshot.
SELECT a.name, a.certificate, a.risk, a.complete_through, len(a.open_ranges) AS open_ranges
FROM (SELECT unnest(advertisers) AS a FROM read_json(getvariable('manifest'), maximum_object_size = 268435456));

-- A macro, because a view cannot take its files from a variable that changes later: FROM extracted('applications_anonymous').
CREATE OR REPLACE MACRO extracted(name) AS TABLE
SELECT * FROM read_parquet((SELECT list(path) FROM extract_files WHERE view = name));
