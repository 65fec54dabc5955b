package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
)

// job returns a job of the list.
func (p *practice) job(t *testing.T, name string) object {
	t.Helper()
	list := p.get(t, "/api/v1/jobs/", p.Admin(t)).expect(t, 200)
	for _, one := range at(t, list, "results").([]any) {
		if one := one.(object); one["name"] == name {
			return one
		}
	}
	t.Fatalf("there is no job %s\n%s", name, list.body)
	return nil
}

// runJob runs a job to its end and returns its result.
func (p *practice) runJob(t *testing.T, name string) string {
	t.Helper()
	eventually(t, 2*within, name+" begins", func() bool { // the scheduler may be running it
		begun := p.post(t, "/api/v1/jobs/"+name+"/run/", p.Admin(t), object{})
		return begun.status != 409 && begun.expect(t, 202).status == 202
	})
	status := "running"
	eventually(t, 2*within, name+" ends", func() bool {
		status = p.job(t, name)["last_run"].(object)["status"].(string)
		return status != "running"
	})
	return status
}

// Administrators list jobs and run them, one run at a time. Source: docs/decisions/jobs.md, "Running a job by hand".
func TestJobsByHand(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	if job := p.job(t, "device-billing"); job["schedule"] != "0 2 * * *" || job["last_run"] != nil || job["next_run_at"] == nil {
		t.Errorf("%v", job)
	}
	if status := p.runJob(t, "stale-readings"); status != "succeeded" {
		t.Error(status)
	}
	run := p.job(t, "stale-readings")["last_run"].(object)
	if run["started_at"] == nil || run["finished_at"] == nil || run["counts"] == nil {
		t.Errorf("%v", run)
	}
	p.set(t, "INSERT INTO job_runs (job, scheduled_at, started_at, status) VALUES ('reading sums', '', '2026-01-15T13:45:00.000000Z', 'running')")
	wantAt(t, p.post(t, "/api/v1/jobs/reading-sums/run/", p.Admin(t), object{}).expect(t, 409), object{"code": "job_running"})
	for _, name := range []string{"nothing", "stale%20readings", "stale readings"} {
		p.post(t, "/api/v1/jobs/"+strings.ReplaceAll(name, " ", "%20")+"/run/", p.Admin(t), object{}).expect(t, 404)
	}
	nurse := p.user(t, "nurse", nil)
	p.get(t, "/api/v1/jobs/", nurse).expect(t, 403)
	p.post(t, "/api/v1/jobs/stale-readings/run/", nurse, object{}).expect(t, 403)
	if n := number(t, p.database(t), `SELECT COUNT(*) FROM audit_log WHERE event = 'job.run' AND resource_id = 'stale-readings'`); n != 1 {
		t.Errorf("%d entries in the audit trail", n)
	}
	list := p.must(t, p.Dir, "jobs", "list")
	if !strings.Contains(list, "stale-readings") || strings.Count(list, "\n") != int(numberAt(t, p.get(t, "/api/v1/jobs/", p.Admin(t)), "count"))+1 {
		t.Error(list)
	}
}

// A daily run missed while the service was down is made up for soon after the start, once. Completed runs are not repeated.
// Source: docs/decisions/jobs.md, "Missed runs".
func TestMissedJobsRunLater(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	p.runJob(t, "hub-check")
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	if n := number(t, p.database(t), `SELECT COUNT(*) FROM job_runs WHERE job = 'device billing'`); n != 0 {
		t.Fatalf("%d runs of a job that was never due", n)
	}
	p.set(t, "UPDATE job_runs SET started_at = '"+time.Now().UTC().Add(-25*time.Hour).Format("2006-01-02T15:04:05.000000Z")+"'")
	p.serve(t, "")
	runs := func(job string) int {
		return number(t, p.database(t), `SELECT COUNT(*) FROM job_runs WHERE job = {:job} AND status = 'succeeded'`, dbx.Params{"job": job})
	}
	eventually(t, 3*within, "what was missed has run", func() bool {
		return runs("device billing") == 1 && runs("audit verification") == 1 && runs("retention purge") == 1 && runs("backup") == 1
	})
	if kept, err := filepath.Glob(filepath.Join(p.Dir, "snapshots", "vigil-*.age")); err != nil || len(kept) != 1 {
		t.Errorf("%v, %v", kept, err)
	}
}

// Each night the newest backup is verified. The last verified backup is never removed, and no backup is taken of a damaged
// database.
// Source: docs/decisions/operating.md, "Verified backups".
func TestBackupVerification(t *testing.T) {
	t.Parallel()
	metrics := freeAddr(t)
	p := newPractice(t, "VIGIL_BACKUP_KEEP=1", "VIGIL_METRICS_ADDR="+metrics).serve(t, "")
	kept := func() []string {
		names, err := filepath.Glob(filepath.Join(p.Dir, "snapshots", "vigil-*.age"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	figures := func() (taken, verified float64) {
		samples, _ := scrape(t, metrics)
		for _, name := range []string{"vigil_backup_last_success_timestamp_seconds", "vigil_backup_last_verified_timestamp_seconds"} {
			if _, there := samples[name]; !there {
				t.Errorf("%s does not exist", name)
			}
		}
		return samples["vigil_backup_last_success_timestamp_seconds"], samples["vigil_backup_last_verified_timestamp_seconds"]
	}
	if taken, verified := figures(); taken != 0 || verified != 0 {
		t.Errorf("taken %v, verified %v before the first", taken, verified)
	}
	p.must(t, p.Dir, "backup", "create") // by a timer, for example: it counts as taken, but not as verified
	if taken, verified := figures(); taken == 0 || verified != 0 {
		t.Errorf("taken %v, verified %v after the command", taken, verified)
	}
	second := time.Now().Unix()
	eventually(t, within, "the next backup has another name, which is to the second", func() bool { return time.Now().Unix() != second })
	if status := p.runJob(t, "backup"); status != "succeeded" {
		t.Fatalf("%s\n%s", status, p.Output())
	}
	first := kept()
	if taken, verified := figures(); len(first) != 1 || taken == 0 || verified < taken {
		t.Errorf("%v kept; taken %v, verified %v", first, taken, verified)
	}
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	p.damage(t)
	p.serve(t, "")
	for range 3 {
		if status := p.runJob(t, "backup"); status != "failed" {
			t.Fatalf("of a damaged database: %s", status)
		}
	}
	if now := kept(); len(now) != 1 || now[0] != first[0] {
		t.Errorf("kept %v, want %v", now, first)
	}
	eventually(t, within, "what is wrong is told", func() bool { return strings.Contains(p.Output(), "the database is damaged") })
	// An invalid copy does not displace a valid one.
	if err := os.WriteFile(filepath.Join(p.Dir, "snapshots", "vigil-20990101T000000Z.tar.gz.age"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := p.runJob(t, "backup-verification"); status != "failed" || len(kept()) != 2 {
		t.Errorf("%s, %v", status, kept())
	}
}

// damage overwrites a page of a table that the test does not read.
func (p *practice) damage(t *testing.T) {
	t.Helper()
	db := p.database(t)
	root, size := number(t, db, `SELECT rootpage FROM sqlite_master WHERE name = 'used_challenges'`), number(t, db, "PRAGMA page_size")
	file, err := os.OpenFile(filepath.Join(p.Dir, "data.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte(strings.Repeat("\x77", 100)), int64(root-1)*int64(size)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
