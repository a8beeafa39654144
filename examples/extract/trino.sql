-- Reads an extract with Trino's Hive connector (written for Trino 470, not run by the tests). The folder holds files of several snapshots,
-- so the view asks for those that the manifest names. Needs hive.recursive-directories=true and
-- hive.timestamp-precision=MICROSECONDS.
CREATE TABLE hive.intake.applications_anonymous_files (
  advertiser_id bigint, application_id bigint, person_key varchar, job_reference varchar,
  submitted_at timestamp(6), submitted_local timestamp(6), source_offset varchar,
  time_in_role_months integer, is_new_to_workforce boolean, screening_outcome varchar,
  first_seen_at timestamp(6), changed_at timestamp(6), ready_at timestamp(6), missing_since timestamp(6), advertiser varchar
) WITH (format = 'PARQUET', external_location = 's3://bucket/prefix/data/applications_anonymous');

-- One row per path of manifest.files, loaded after each extract by what runs your pipelines.
CREATE TABLE hive.intake.extract_files (path varchar, view varchar) WITH (format = 'PARQUET');

CREATE VIEW hive.intake.applications_anonymous AS
SELECT a.* FROM hive.intake.applications_anonymous_files a
WHERE a."$path" IN (SELECT 's3://bucket/prefix/' || f.path FROM hive.intake.extract_files f);
