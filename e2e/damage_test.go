package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damagePage overwrites the beginning of the root page of a table or index of a stopped practice, or of its first free page for "".
func (p *practice) damagePage(t *testing.T, name string) {
	t.Helper()
	db := p.database(t)
	path := filepath.Join(p.Dir, "data.db")
	page := 0
	if name != "" {
		page = number(t, db, `SELECT rootpage FROM sqlite_master WHERE name = '`+name+`'`)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // what was written is checked by the service
	if name == "" {
		header := make([]byte, 4)
		if _, err := file.ReadAt(header, 32); err != nil {
			t.Fatal(err)
		}
		page = int(header[0])<<24 | int(header[1])<<16 | int(header[2])<<8 | int(header[3])
	}
	if page < 2 {
		t.Fatalf("there is no page of %q", name)
	}
	if _, err := file.WriteAt([]byte(strings.Repeat("\x77", 100)), int64(page-1)*int64(number(t, db, "PRAGMA page_size"))); err != nil {
		t.Fatal(err)
	}
}

// A damaged database is down, and its file is named, without a request that reads the damaged part. A restored one is healthy.
func TestDamageIsDown(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{"table": "used_challenges", "index": "idx_remittances_digest", "free pages": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metrics := freeAddr(t)
			p := newPractice(t, "VIGIL_METRICS_ADDR="+metrics).serve(t, "")
			health := func() string {
				answer := p.get(t, "/health/", "")
				return fmt.Sprint(answer.status, " ", at(t, answer, "services.database.status"), " ", at(t, answer, "services.database.detail"))
			}
			figures := func() [2]float64 {
				samples, _ := scrape(t, metrics)
				return [2]float64{samples["vigil_database_damaged"], samples[`vigil_service_health{service="database"}`]}
			}
			eventually(t, within, "it is healthy", func() bool { return health() == "200 healthy <nil>" })
			p.must(t, p.Dir, "backup", "create")
			if found := figures(); found != [2]float64{0, 1} {
				t.Errorf("damaged, health: %v", found)
			}
			if err := p.Stop(t); err != nil {
				t.Fatal(err)
			}
			if object == "" {
				p.set(t, "CREATE TABLE dropped (value BLOB); INSERT INTO dropped VALUES (zeroblob(100000)); DROP TABLE dropped")
			}
			p.damagePage(t, object)
			p.serve(t, "")
			eventually(t, within, "it is down", func() bool { return health() == "503 down data.db is damaged" })
			if found := figures(); found != [2]float64{1, 0} {
				t.Errorf("damaged, health: %v", found)
			}
			for _, said := range []string{"the database is damaged", filepath.Join(p.Dir, "data.db"), "VigilDatabaseDamaged"} {
				eventually(t, within, said+" is logged", func() bool { return strings.Contains(p.Output(), said) })
			}
			if err := p.Stop(t); err != nil {
				t.Fatal(err)
			}
			p.must(t, p.Dir, "backup", "restore", "--replace")
			p.serve(t, "")
			eventually(t, within, "it is healthy again", func() bool { return health() == "200 healthy <nil>" && figures() == [2]float64{0, 1} })
		})
	}
}
