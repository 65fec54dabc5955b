package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Without Java and Maven the comparison is skipped without an error.
func TestComparisonSkippedWithoutJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	tab := &table{}
	if err := compareFHIRServer(t.Context(), built{scratch: t.TempDir()}, plan{}, tab); err != nil || len(tab.rows)+len(tab.remarks) > 0 {
		t.Errorf("without Java: %d rows, %v", len(tab.rows), err)
	}
}

// Every target must return the same answer.
func TestCheckAnswer(t *testing.T) {
	shown := func(count int, member, more string) string {
		return `{` + more + `"` + member + `":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a"},`, count), ",") + `]}`
	}
	last, all := questions[0], questions[1]
	for _, test := range []struct {
		question
		answer string
		stored int
		fits   bool
	}{
		{last, shown(20, "entry", `"resourceType":"Bundle",`), peerStored, true},
		{last, shown(20, "results", `"count":25,`), peerStored, true},
		{last, shown(19, "entry", ""), peerStored, false},
		{last, shown(2, "entry", ""), 2 * peerPatients, true},
		{all, shown(20, "entry", `"total":10000,`), 10_000, true},
		{all, shown(20, "results", `"count":10000,`), 10_000, true},
		{all, shown(20, "entry", `"total":9999,`), 10_000, false},
		{all, shown(20, "entry", ""), 10_000, false},
		{all, shown(21, "entry", `"total":10000,`), 10_000, false},
		{all, shown(7, "entry", `"total":7,`), 7, true},
		{all, `<Bundle/>`, 10_000, false},
	} {
		if err := test.question.checkAnswer([]byte(test.answer), test.stored); (err == nil) != test.fits {
			t.Errorf("%s: %.60s of %d: %v", test.name, test.answer, test.stored, err)
		}
	}
}

// The peer receives what Vigil would deliver: a new reading and identifier each time, for a patient that it has.
func TestPeerObservations(t *testing.T) {
	f, seen := &fhirServer{}, map[string]bool{}
	f.options.Address = "host:1"
	to := f.observations(time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC))
	for range 300 {
		seen[string(to.next(to.sent.Add(1)))] = true
	}
	if len(seen) != 300 {
		t.Errorf("%d requests of 300 differ", len(seen))
	}
	head, body, _ := strings.Cut(string(to.next(peerPatients+10)), "\r\n\r\n")
	if !strings.HasPrefix(head, "POST /fhir/Observation HTTP/1.1\r\nHost: host:1\r\n") || !strings.Contains(head, "\r\nAccept: application/fhir+json") {
		t.Error(head)
	}
	var got struct {
		ResourceType, Status, EffectiveDateTime string
		Subject                                 struct{ Reference string }
		Identifier                              []struct{ Value string }
		Component                               []struct{ ValueQuantity struct{ Value float64 } }
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.ResourceType != "Observation" || got.Status != "final" || got.EffectiveDateTime != "2026-03-04T05:12:57Z" || got.Subject.Reference != "Patient/p10" ||
		len(got.Identifier) != 1 || got.Identifier[0].Value != "urn:uuid:00000000-0000-7000-8000-00000000019a" ||
		len(got.Component) != 3 || got.Component[0].ValueQuantity.Value != 150 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(string(fhirPatients(11)), `"url":"Patient/p10"`) {
		t.Error("the peer does not have that patient")
	}
}

func TestAddCPUNote(t *testing.T) {
	r := addCPUNote(row{figures: figures{cpu: 400 * time.Microsecond}, other: figures{cpu: 5 * time.Millisecond}})
	if r.note != "processor time each 0.40 ms, its 5.00 ms: 12.5 ×" {
		t.Error(r.note)
	}
	if r := addCPUNote(row{figures: figures{cpu: time.Second}, note: "as it was"}); r.note != "as it was" {
		t.Error(r.note)
	}
}

// The CPU time of a stretch is divided among its own requests only.
func TestCPUPerRequest(t *testing.T) {
	to := &target{}
	if each := to.cpuPerRequest()(); each != 0 {
		t.Errorf("without a CPU clock: %s", each)
	}
	worked := 5 * time.Second
	to.cpuTime = func() time.Duration { return worked }
	to.sent.Store(70)
	each := to.cpuPerRequest()
	worked += time.Second
	to.sent.Add(4)
	if got := each(); got != 250*time.Millisecond {
		t.Errorf("a second for four requests is %s each", got)
	}
}

func TestSelectTargets(t *testing.T) {
	rounds := [][]figures{{{failed: 1}, {failed: 2}, {failed: 3}}, {{failed: 4}, {failed: 5}, {failed: 6}}}
	if got := selectTargets(rounds, 1, 2); len(got) != 2 || got[0][0].failed != 2 || got[0][1].failed != 3 || got[1][0].failed != 5 || got[1][1].failed != 6 {
		t.Errorf("%+v", got)
	}
}

func TestPeerRatio(t *testing.T) {
	if r := peerRatio("memory", 50, 1500, "note"); r.value != 30 || r.unit != "×" || r.against != peer || r.targetMet() != "" {
		t.Errorf("%+v", r)
	}
}

func TestFolderSize(t *testing.T) {
	dir := t.TempDir()
	for name, length := range map[string]int{"a": 10, "b/c": 2000, "b/d/e": 300_000} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, length), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := folderSize(dir); err != nil || size != 302_010 {
		t.Errorf("%d, %v", size, err)
	}
	if _, err := folderSize(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing folder must fail")
	}
}

// The header names the SQLite version and driver of this program.
func TestSQLiteHere(t *testing.T) {
	if got := sqliteHere(); !strings.HasPrefix(got, "SQLite 3.") || !strings.Contains(got, driver+" ("+driverModule+" v") {
		t.Error(got)
	}
}

// Remarks are written above the rows of the file, one per line.
func TestRemarks(t *testing.T) {
	tab := &table{}
	tab.remark("%d of %s", 5, "them")
	tab.remark("no PostgreSQL")
	file := filepath.Join(t.TempDir(), "remarks.csv")
	if err := tab.writeCSV(file, "a machine"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "# a machine\n# 5 of them\n# no PostgreSQL\npath,clients,") {
		t.Errorf("%s %v", text, err)
	}
}
