-- Reads an extract with Spark SQL (written for Spark 3.5, not run by the tests). Spark takes a list of files from Python most easily:
--   import json
--   target = 's3a://bucket/prefix'
--   load = lambda path: json.loads(spark.sparkContext.wholeTextFiles(f'{target}/{path}').first()[1])
--   manifest = load(load('latest.json')['manifest'])
--   for view in manifest['columns']:
--       paths = [f"{target}/{file['path']}" for file in manifest['files'] if file['view'] == view]
--       spark.read.parquet(*paths).createOrReplaceTempView(view)
SELECT date_trunc('week', submitted_at) AS week, count(*) AS applications
FROM applications_anonymous
GROUP BY 1
ORDER BY 1;
