-- Questions across practices, for DuckDB, over what `vigil export` and its nightly job write as Parquet. Say where the files are first:
--
--   SET VARIABLE exports = 's3://elm-street/warehouse';     -- or a folder
--   .read across-practices.sql
--
-- A row is in one file only, so that nothing has to be made distinct. practice and date come from the files' names; date is the day on which the row
-- was made. Ids mean nothing outside, and those of two practices have nothing to do with each other.

CREATE OR REPLACE VIEW observations AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=observations/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

CREATE OR REPLACE VIEW alerts AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=alerts/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

CREATE OR REPLACE VIEW patients AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=patients/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

CREATE OR REPLACE VIEW transmissions AS
SELECT * FROM read_parquet(getvariable('exports') || '/practice=*/table=transmissions/date=*/*.parquet', hive_partitioning = true, union_by_name = true);

-- How many are monitored, and how many of them have measured in the last 30 days there are?
SELECT p.practice, count(DISTINCT p.id) AS monitored, count(DISTINCT o.patient_id) AS measuring
FROM patients p
LEFT JOIN observations o ON o.practice = p.practice AND o.patient_id = p.id AND o.status = 'final'
	AND o.date > (SELECT max(date) FROM observations) - INTERVAL 30 DAY
WHERE p.active AND NOT p.deleted
GROUP BY p.practice ORDER BY p.practice;

-- Of those with at least two blood pressures, how many are controlled: a mean below 130/80 mmHg?
WITH means AS (
	SELECT practice, patient_id, avg(systolic) AS systolic, avg(diastolic) AS diastolic
	FROM observations WHERE type = 'blood_pressure' AND status = 'final'
	GROUP BY practice, patient_id HAVING count(*) >= 2
)
SELECT practice, count(*) AS patients, round(100.0 * avg((systolic < 130 AND diastolic < 80)::INT), 1) AS controlled_percent
FROM means GROUP BY practice ORDER BY practice;

-- How long does a critical alert wait until somebody has seen it, in minutes?
SELECT practice, count(*) AS critical, count(acknowledged_at) AS seen, median(date_diff('minute', created_at, acknowledged_at)) AS median_minutes
FROM alerts WHERE level = 'critical' GROUP BY practice ORDER BY practice;

-- What does not reach the EMR, and why?
SELECT practice, error_code, count(*) AS failed
FROM transmissions WHERE status = 'failed' GROUP BY ALL ORDER BY practice, failed DESC;
