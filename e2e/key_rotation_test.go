package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pocketbase/dbx"
)

// An operator's complete key rotation: add a key, restart, rotate under load, remove the old key, restart.
func TestRotateKeysUnderLoad(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	oldKeys := valueOf(p.Env, "VIGIL_ENCRYPTION_KEYS")
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh)
	newKeys := "rotated:" + base64.StdEncoding.EncodeToString(fresh)
	withKeys := func(keys string) []string {
		return append(append([]string(nil), p.Env...), "VIGIL_ENCRYPTION_KEYS="+keys)
	}
	oldID, _, _ := strings.Cut(oldKeys, ":")

	p.serve(t, "")
	const patients = 40
	ids := make([]string, patients)
	for i := range ids {
		ids[i] = p.patient(t, object{"last_name": fmt.Sprint("Before", i), "ssn": fmt.Sprintf("219-09-%04d", i+1)})
	}
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}

	p.process = launchAt(t, freeAddr(t), p.Dir, withKeys(newKeys+","+oldKeys), "serve")
	p.URL, p.admin = p.process.URL, ""
	token := p.Admin(t)
	stop, last := make(chan struct{}), make([]int, patients)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for round := 1; ; round++ {
				for i := w; i < patients; i += 4 {
					select {
					case <-stop:
						return
					default:
					}
					body := encode(t, object{"first_name": "Ann", "last_name": fmt.Sprintf("After%d-%d", i, round), "date_of_birth": "1950-01-02", "gender": "female"})
					if a := p.send(t, http.MethodPut, "/api/v1/patients/"+ids[i]+"/", token, body); a.status != http.StatusOK {
						t.Errorf("a write during the rotation answered %d: %s", a.status, a.body)
						return
					}
					last[i] = round
				}
			}
		})
	}
	rotate := func() string {
		cmd := exec.Command(binary(t), "keys", "rotate", "--dir", p.Dir)
		cmd.Env = environ(withKeys(newKeys + "," + oldKeys))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("keys rotate: %v\n%s", err, out)
		}
		return string(out)
	}
	said := rotate()
	close(stop)
	writers.Wait()
	if !strings.Contains(said, "re-encrypted under key rotated.") || !strings.Contains(said, "Key "+oldID+" is still needed for ") {
		t.Errorf("keys rotate printed:\n%s", said)
	}
	rotate() // values read before and written after the first rotation
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	wantNothingUnder(t, p.database(t), oldID)

	cmd := exec.Command(binary(t), "serve", "--dir", p.Dir, "--http", freeAddr(t))
	cmd.Env = environ(withKeys(oldKeys))
	if out, err := cmd.CombinedOutput(); err == nil || strings.Count(strings.TrimSpace(string(out)), "\n") > 0 || !strings.Contains(string(out), "VIGIL_ENCRYPTION_KEYS") {
		t.Errorf("with the old key alone the service returned: %v\n%s", err, out)
	}
	p.process = launchAt(t, freeAddr(t), p.Dir, withKeys(newKeys), "serve")
	p.URL, p.admin = p.process.URL, ""
	for i, id := range ids {
		want := fmt.Sprint("Before", i)
		if last[i] > 0 {
			want = fmt.Sprintf("After%d-%d", i, last[i])
		}
		wantAt(t, p.get(t, "/api/v1/patients/"+id+"/", p.Admin(t)).expect(t, 200), object{"last_name": want, "ssn_last4": fmt.Sprintf("%04d", i+1)})
	}
}

// wantNothingUnder searches every text column for values under a key, except the audit log and the tables left out.
func wantNothingUnder(t *testing.T, db *dbx.DB, keyID string, leftOut ...string) {
	t.Helper()
	var columns []struct {
		Table  string `db:"tbl"`
		Column string `db:"col"`
	}
	err := db.NewQuery(`SELECT m.name AS tbl, c.name AS col FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name != 'audit_log' AND c.type = 'TEXT'`).All(&columns)
	if err != nil || len(columns) < 100 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	for _, c := range columns {
		if slices.Contains(leftOut, c.Table) {
			continue
		}
		var n int
		err := db.NewQuery(fmt.Sprintf(`SELECT COUNT(*) FROM [[%s]] WHERE [[%s]] LIKE {:prefix}`, c.Table, c.Column)).Bind(dbx.Params{"prefix": "v_:" + keyID + ":%"}).Row(&n)
		if err != nil || n > 0 {
			t.Errorf("%s.%s holds %d values under the old key, %v", c.Table, c.Column, n, err)
		}
	}
}
