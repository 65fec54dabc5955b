package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Two practices export into one bucket, by job and by command; the export identifies no person. Source:
// docs/decisions/operating.md, "Warehouse".
func TestWarehouse(t *testing.T) {
	t.Parallel()
	bucket := vigiltest.NewBucket(t, "practices")
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Truncate(24 * time.Hour).Add(12 * time.Hour)
	people := map[string]string{}
	for _, name := range []string{"elm-street", "oak-lane"} {
		metrics := freeAddr(t)
		exported := func() (float64, bool) {
			samples, _ := scrape(t, metrics)
			at, there := samples["vigil_warehouse_last_success_timestamp_seconds"]
			return at, there
		}
		p := newPractice(t, "VIGIL_PRACTICE_TIME_ZONE=Etc/UTC", "VIGIL_WAREHOUSE_FORMAT=parquet", "VIGIL_WAREHOUSE_PRACTICE="+name, "VIGIL_BACKUP_S3_BUCKET="+bucket.Name,
			"VIGIL_BACKUP_S3_ENDPOINT="+bucket.URL, "VIGIL_BACKUP_S3_ACCESS_KEY="+vigiltest.BucketKey, "VIGIL_BACKUP_S3_SECRET=secret", "VIGIL_BACKUP_S3_FORCE_PATH_STYLE=true",
			"VIGIL_BACKUP_KEEP=0", "VIGIL_METRICS_ADDR="+metrics).serve(t, "")
		if last, there := exported(); last != 0 || !there {
			t.Errorf("%s: exported at %v, %v before the first", name, last, there)
		}
		person := p.patient(t, object{"first_name": "Zerlina", "mrn": "MRN-" + name})
		people[name] = person
		p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(person, 121, 81, yesterday)).expect(t, 201)
		db := p.writable(t)
		for _, table := range []string{"patients", "observations"} { // as if added yesterday
			if _, err := db.NewQuery(fmt.Sprintf("UPDATE %s SET created_at = '%s'", table, yesterday.Format("2006-01-02T15:04:05.000000Z"))).Execute(); err != nil {
				t.Fatal(err)
			}
		}
		if status := p.runJob(t, "warehouse-export"); status != "succeeded" {
			t.Errorf("%s: the job %s", name, status)
		}
		day := "warehouse/practice=" + name + "/table=%s/date=" + yesterday.Format(time.DateOnly) + "/rows.parquet"
		first := bucket.Objects()
		for _, table := range []string{"patients", "observations"} {
			if len(first[fmt.Sprintf(day, table)]) == 0 {
				t.Errorf("no %s among %v", fmt.Sprintf(day, table), slices.Sorted(maps.Keys(first)))
			}
		}
		if out := p.must(t, p.Dir, "export", "--date", yesterday.Format(time.DateOnly)); out != "2 files written, 2 rows\n" {
			t.Errorf("the export of one day printed %s", out)
		}
		if key := fmt.Sprintf(day, "observations"); string(first[key]) != string(bucket.Objects()[key]) {
			t.Errorf("%s differs in the second export", key)
		}
		p.mustFail(t, "not over", p.Dir, "export", "--date", time.Now().UTC().Format(time.DateOnly))
		p.must(t, p.Dir, "export", "--all")
		if status := p.job(t, "warehouse-export")["last_run"].(object)["status"]; status != "succeeded" {
			t.Errorf("by command: %v", status)
		}
		if last, _ := exported(); last == 0 {
			t.Errorf("%s: the metric was not updated", name)
		}
		var noted int
		if err := db.NewQuery("SELECT COUNT(*) FROM audit_log WHERE event = 'warehouse.export' AND outcome = '0'").Row(&noted); err != nil || noted != 3 {
			t.Errorf("%d entries in the audit trail, %v", noted, err)
		}
	}
	for key, content := range bucket.Objects() {
		for _, secret := range []string{"Zerlina", "MRN-", people["elm-street"], people["oak-lane"]} {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s has %s", key, secret)
			}
		}
	}
	newPractice(t).mustFail(t, "VIGIL_WAREHOUSE_FORMAT", t.TempDir(), "export")
}
