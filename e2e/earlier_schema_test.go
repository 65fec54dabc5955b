package e2e

import (
	"strings"
	"testing"
)

// A folder with the schema of the last build before the baseline keeps its data. With an older one the service and the
// commands refuse to start, name the commit to start first, and change nothing.
func TestEarlierSchema(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	p.serve(t, "")
	patient := p.patient(t, object{"last_name": "Kept"})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	p.set(t, "DELETE FROM _migrations WHERE file GLOB '1767226*'")
	p.set(t, "INSERT INTO _migrations (file, applied) VALUES ('1767225601_sequences.go', 1), ('1767225992_readings_by_kind.go', 1)")
	schema := "SELECT COUNT(*) + SUM(length(sql)) FROM sqlite_schema WHERE sql IS NOT NULL"
	before := number(t, p.database(t), schema)
	for _, args := range [][]string{{"serve", "--http", freeAddr(t)}, {"keys", "rotate"}, {"ingestion", "replay"}} {
		status, out, errOut := vigil(t, p.Env, "", append(args, "--dir", p.Dir)...)
		if status != 1 || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "start a build of commit 43bc52ef on it once") {
			t.Errorf("vigil %v ended with %d\n%s%s", args, status, out, errOut)
		}
	}
	if after := number(t, p.database(t), schema); after != before {
		t.Errorf("the schema changed: %v, then %v", before, after)
	}
	if n := number(t, p.database(t), "SELECT COUNT(*) FROM _migrations WHERE file GLOB '1767226*'"); n != 0 {
		t.Errorf("%d migrations of the baseline are recorded", n)
	}

	p.set(t, "INSERT INTO _migrations (file, applied) VALUES ('1767225993_no_journals.go', 1)")
	p.serve(t, "")
	wantAt(t, p.get(t, "/api/v1/patients/"+patient+"/", p.Admin(t)).expect(t, 200), object{"last_name": "Kept"})
}
