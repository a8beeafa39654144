// Compares the counts by day that analysts' views read with a count of the applications, written here once more.

/** One row per day that differs: `wrong`, in words. */
export const wrongDaysSql = `
  WITH local AS (
    SELECT a.*, intake.local_time(a.submitted_at, a.source_offset)::date AS day FROM intake.applications a WHERE a.erased_at IS NULL
  ), jobs AS (
    SELECT a.advertiser_id, a.day, a.job_reference, count(*) AS applications, count(DISTINCT a.person_key) AS people,
      coalesce(sum(s.screens), 0) AS screens, coalesce(sum(s.passed), 0) AS passed, coalesce(sum(s.failed), 0) AS failed,
      min(a.submitted_at) AS first_at, max(a.submitted_at) AS last_at
    FROM local a
    LEFT JOIN (SELECT advertiser_id, application_id, count(*) AS screens, count(*) FILTER (WHERE outcome = 'pass') AS passed,
        count(*) FILTER (WHERE outcome = 'fail') AS failed
      FROM intake.screens GROUP BY 1, 2) AS s USING (advertiser_id, application_id)
    GROUP BY 1, 2, 3
  ), sums AS (
    SELECT advertiser_id, job_reference, sum(applications), sum(screens), sum(passed), sum(failed), min(first_at), max(last_at)
    FROM jobs GROUP BY 1, 2
  ), summed AS (
    SELECT advertiser_id, job_reference, sum(applications), sum(screens), sum(screens_passed), sum(screens_failed), min(first_at), max(last_at)
    FROM intake.job_months_now GROUP BY 1, 2
  ), delays AS (
    SELECT a.advertiser_id, a.day, count(*) AS applications, count(a.ready_at) AS ready,
      round((percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.first_seen_at - a.submitted_at)))::numeric, 1) AS median
    FROM local a JOIN intake.advertisers v ON v.advertiser_id = a.advertiser_id AND a.submitted_at >= v.created_at
    GROUP BY 1, 2
  )
  SELECT DISTINCT format('the counts of %s on %s', coalesce(job_reference, 'no job'), day) AS wrong FROM (
    (SELECT * FROM jobs EXCEPT ALL SELECT * FROM intake.job_days_now) UNION ALL (SELECT * FROM intake.job_days_now EXCEPT ALL SELECT * FROM jobs)) AS j
  UNION ALL
  SELECT DISTINCT format('the sums of %s', coalesce(job_reference, 'no job')) FROM (
    (SELECT * FROM sums EXCEPT ALL SELECT * FROM summed) UNION ALL (SELECT * FROM summed EXCEPT ALL SELECT * FROM sums)) AS s
  UNION ALL
  SELECT DISTINCT format('the delays of %s', day) FROM (
    (SELECT * FROM delays EXCEPT ALL SELECT advertiser_id, day, applications, ready, median_seconds FROM intake.delay_days_now)
    UNION ALL
    (SELECT advertiser_id, day, applications, ready, median_seconds FROM intake.delay_days_now EXCEPT ALL SELECT * FROM delays)) AS d`;
