-- Queries across practices, for DuckDB, over the Parquet files of `vigil export` and its nightly job. First set their location:
--
--   SET VARIABLE exports = 's3://elm-street/warehouse';     -- or a folder
--   .read across-practices.sql
--
-- A row is in one file only, so no deduplication is needed. practice and date come from the file names; date is the day on which the row
-- was created. Ids have no meaning outside, and ids of two practices are unrelated.

CREATE OR REPLACE VIEW observations AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=observations/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

CREATE OR REPLACE VIEW alerts AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=alerts/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

CREATE OR REPLACE VIEW patients AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=patients/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

CREATE OR REPLACE VIEW transmissions AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=transmissions/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

-- How many patients are monitored, and how many of them have measured in the last 30 days?
SELECT p.practice, count(DISTINCT p.id) AS monitored, count(DISTINCT o.patient_id) AS measuring
FROM patients p
LEFT JOIN observations o ON o.practice = p.practice AND o.patient_id = p.id AND o.status = 'final'
	AND o.date > (SELECT max(date) FROM observations) - INTERVAL 30 DAY
WHERE p.active AND NOT p.deleted
GROUP BY p.practice ORDER BY p.practice;

-- How many patients with at least two blood pressures are controlled: a mean below 130/80 mmHg?
WITH means AS (
	SELECT practice, patient_id, avg(systolic) AS systolic, avg(diastolic) AS diastolic
	FROM observations WHERE type = 'blood_pressure' AND status = 'final'
	GROUP BY practice, patient_id HAVING count(*) >= 2
)
SELECT practice, count(*) AS patients, round(100.0 * avg((systolic < 130 AND diastolic < 80)::INT), 1) AS controlled_percent
FROM means GROUP BY practice ORDER BY practice;

-- How many minutes until a critical alert is acknowledged?
SELECT practice, count(*) AS critical, count(acknowledged_at) AS seen, median(date_diff('minute', created_at, acknowledged_at)) AS median_minutes
FROM alerts WHERE level = 'critical' GROUP BY practice ORDER BY practice;

-- Which deliveries fail, and why?
SELECT practice, error_code, count(*) AS failed
FROM transmissions WHERE status = 'failed' GROUP BY ALL ORDER BY practice, failed DESC;
