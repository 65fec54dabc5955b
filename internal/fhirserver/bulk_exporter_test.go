package fhirserver_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// patientSource serves the patients of the database as resources, ten a page, and calls before ahead of each page.
type patientSource struct {
	before     func(app core.App, page int)
	unreadable string
	deleted    []string
	fails      error
	pages      int
}

func (s *patientSource) Read(ctx context.Context, app core.App, kind string, since time.Time, after string) (page fhirserver.ExportPage, err error) {
	s.pages++
	if s.before != nil {
		s.before(app, s.pages)
	}
	if err := errors.Join(s.fails, ctx.Err()); err != nil || kind != "Patient" {
		return page, err
	}
	var ids []string
	err = app.DB().Select("id").From("patients").Where(dbx.NewExp("id > {:after} AND ({:since} = '' OR updated_at > {:since})", dbx.Params{"after": after, "since": collections.FormatInstant(since)})).
		OrderBy("id").Limit(10).Column(&ids)
	for _, id := range ids {
		page.Resources = append(page.Resources, fhirserver.ExportLine{ID: id, Body: []byte(`{"resourceType":"Patient","id":"` + id + `"}`), Unreadable: id == s.unreadable})
	}
	if len(ids) == 10 {
		page.Next = ids[9]
	}
	return page, err
}

func (s *patientSource) Deleted(context.Context, core.App, string, time.Time) ([]string, bool, error) {
	return s.deleted, true, nil
}

// fixture is an exporter with one client and its own clock.
type fixture struct {
	t      *testing.T
	app    *tests.TestApp
	source *patientSource
	engine *fhirserver.BulkExporter
	now    time.Time
	client string
}

func newFixture(t *testing.T, patients int) *fixture {
	t.Helper()
	h := &fixture{t: t, app: vigiltest.NewApp(t), source: &patientSource{}, now: vigiltest.Clock}
	h.client = h.addClient()
	for range patients {
		h.enroll()
	}
	h.engine = h.restart()
	return h
}

// restart returns a new exporter on the same database.
func (h *fixture) restart() *fhirserver.BulkExporter {
	return fhirserver.NewBulkExporter(fhirserver.BulkExporterOptions{
		Resources: h.source, Retention: time.Hour, MaxPerFile: 20, Clock: func() time.Time { return h.now }, Log: slog.New(slog.DiscardHandler),
	})
}

func (h *fixture) addClient() string {
	h.t.Helper()
	c, err := collections.CreateClient(h.app, collections.ClientValues{Name: "Warehouse", Active: true}, "hash", "key", h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	return c.Id
}

func (h *fixture) start(request fhirserver.ExportRequest) string {
	h.t.Helper()
	if request.Types == nil {
		request.Types = []string{"Patient"}
	}
	request.URL = "https://vigil.example.org/fhir/R4/$export"
	id, err := h.engine.Start(h.app, h.client, request, audit.System(), h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// run runs the queued exports.
func (h *fixture) run() {
	h.t.Helper()
	if err := h.engine.RunQueued(h.t.Context(), h.app); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) find(id string) *collections.Export {
	h.t.Helper()
	export, err := h.engine.Find(h.app, h.client, id, h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	return export
}

func (h *fixture) wantStatus(id, status string) *collections.Export {
	h.t.Helper()
	export := h.find(id)
	if export.Status() != status {
		h.t.Fatalf("the export is %s, want %s", export.Status(), status)
	}
	return export
}

// lines reads a file of an export.
func (h *fixture) lines(export *collections.Export, name string) []string {
	h.t.Helper()
	file, _, err := fhirserver.OpenFile(h.app, export, name)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	from, err := file.Lines()
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func (h *fixture) files(export *collections.Export) (list string) {
	h.t.Helper()
	files, err := export.Files()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range files {
		list += fmt.Sprintf("%s %s %s %d; ", f.Kind, f.Type, f.Name, f.Count)
	}
	return list
}

// onDisk returns the files below the export folder.
func (h *fixture) onDisk() (names []string) {
	h.t.Helper()
	root := filepath.Join(h.app.DataDir(), "exports")
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return names
}

func code(err error) string { return vigiltest.Code(err) }

// An export shows one snapshot regardless of concurrent writes. Its files are complete, bounded, encrypted, and identical on every read.
func TestExportIsOneSnapshot(t *testing.T) {
	h := newFixture(t, 45)
	moment := h.now
	h.source.before = func(_ core.App, page int) {
		h.now = moment.Add(time.Duration(page) * time.Second)
		if page == 2 { // concurrent writes
			h.enroll()
			if _, err := h.app.DB().NewQuery(`DELETE FROM patients WHERE id = (SELECT MAX(id) FROM patients)`).Execute(); err != nil {
				t.Error(err)
			}
		}
	}
	id := h.start(fhirserver.ExportRequest{})
	h.wantStatus(id, collections.ExportQueued)
	h.run()
	export := h.wantStatus(id, collections.ExportComplete)
	if got := h.files(export); got != "output Patient Patient-1 20; output Patient Patient-2 20; output Patient Patient-3 5; " {
		t.Errorf("files %s", got)
	}
	if !export.TransactionTime().Equal(moment) || !export.ExpiresAt().Equal(h.now.Add(time.Hour)) {
		t.Errorf("transaction time %s, expires %s", export.TransactionTime(), export.ExpiresAt())
	}
	seen := map[string]bool{}
	for _, name := range []string{"Patient-1.ndjson", "Patient-2.ndjson", "Patient-3.ndjson"} {
		first := h.lines(export, name)
		if second := h.lines(export, name); strings.Join(first, "\n") != strings.Join(second, "\n") {
			t.Errorf("%s differs on the second read", name)
		}
		for _, line := range first {
			seen[line] = true
		}
	}
	if len(seen) != 45 {
		t.Errorf("%d different resources", len(seen))
	}
	disk := h.onDisk()
	if len(disk) != 3 {
		t.Errorf("on the disk: %v", disk)
	}
	for _, name := range disk {
		raw, err := os.ReadFile(name)
		info, _ := os.Stat(name)
		if err != nil || !bytes.HasPrefix(raw, []byte("age-encryption.org/v1\n")) || bytes.Contains(raw, []byte("Patient")) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is stored as %.40q, %v (%v)", name, raw, info.Mode(), err)
		}
	}
	var stored string
	if err := h.app.DB().NewQuery(`SELECT file_key FROM exports`).Row(&stored); err != nil || strings.Contains(stored, "AGE-SECRET-KEY") || stored == "" {
		t.Errorf("the key is stored as %.20q (%v)", stored, err)
	}
	if _, _, err := fhirserver.OpenFile(h.app, export, "../../data.db"); code(err) != "not_found" {
		t.Errorf("file outside the export: %v", err)
	}
	// A file that was changed on disk is not returned.
	raw, err := os.ReadFile(disk[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1]++
	if err := os.WriteFile(disk[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	file, _, err := fhirserver.OpenFile(h.app, export, "Patient-1.ndjson")
	if err == nil {
		_, err = io.ReadAll(file)
	}
	if err == nil {
		t.Error("a changed file is read without an error")
	}
}

// An export since a time contains changed resources, deletions, and issues for ignored parameters and unreadable resources.
func TestIncrementalExport(t *testing.T) {
	h := newFixture(t, 3)
	old, changed := h.enroll(), h.enroll()
	set := func(id string, at time.Time) {
		if _, err := h.app.DB().Update("patients", dbx.Params{"updated_at": collections.FormatInstant(at)}, dbx.HashExp{"id": id}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.app.DB().NewQuery(`UPDATE patients SET updated_at = '2020-01-01T00:00:00.000000Z'`).Execute(); err != nil {
		t.Fatal(err)
	}
	since := h.now.Add(-time.Hour)
	set(old, since)
	set(changed, since.Add(time.Microsecond))
	h.source.deleted, h.source.unreadable = []string{"Patient/gone"}, ""
	id := h.start(fhirserver.ExportRequest{Since: since, Ignored: []string{"_elements"}})
	h.run()
	export := h.wantStatus(id, collections.ExportComplete)
	if got := h.files(export); got != "output Patient Patient-1 1; deleted Bundle deleted-2 1; error OperationOutcome error-3 1; " {
		t.Fatalf("files %s", got)
	}
	if got := h.lines(export, "Patient-1.ndjson"); !strings.Contains(got[0], changed) {
		t.Errorf("changed since: %s", got)
	}
	if got := h.lines(export, "deleted-2.ndjson")[0]; !strings.Contains(got, `"type":"transaction"`) || !strings.Contains(got, `{"method":"DELETE","url":"Patient/gone"}`) {
		t.Errorf("deleted: %s", got)
	}
	if got := h.lines(export, "error-3.ndjson")[0]; !strings.Contains(got, `"severity":"warning"`) || !strings.Contains(got, "_elements") {
		t.Errorf("ignored: %s", got)
	}
	h.source.unreadable = changed
	id = h.start(fhirserver.ExportRequest{})
	h.run()
	export = h.wantStatus(id, collections.ExportComplete)
	if got := h.lines(export, "error-2.ndjson")[0]; !strings.Contains(got, "Patient/"+changed) || !strings.Contains(got, "record_unreadable") {
		t.Errorf("unreadable: %s in %s", got, h.files(export))
	}
}

// An export canceled while running leaves no files, and the next queued export runs.
func TestCanceledExport(t *testing.T) {
	h := newFixture(t, 45)
	first := h.start(fhirserver.ExportRequest{})
	h.now = h.now.Add(time.Second)
	second := h.start(fhirserver.ExportRequest{})
	h.source.before = func(_ core.App, page int) {
		switch page {
		case 4:
			if h.engine.Progress(first) != 30 || h.engine.Progress(second) != 0 || len(h.onDisk()) == 0 {
				t.Errorf("while running: progress %d and %d, files %v", h.engine.Progress(first), h.engine.Progress(second), h.onDisk())
			}
			if err := h.engine.Remove(h.app, h.client, first, audit.System(), h.now); err != nil {
				t.Error(err)
			}
		case 5:
			if len(h.onDisk()) != 0 {
				t.Errorf("files left: %v", h.onDisk())
			}
		}
	}
	h.run()
	if _, err := h.engine.Find(h.app, h.client, first, h.now); code(err) != "not_found" {
		t.Errorf("the canceled export is found: %v", err)
	}
	h.wantStatus(second, collections.ExportComplete)
	if err := h.engine.Remove(h.app, h.client, second, audit.System(), h.now); err != nil || len(h.onDisk()) != 0 {
		t.Errorf("removed: %v, %v", err, h.onDisk())
	}
	if err := h.engine.Remove(h.app, h.client, second, audit.System(), h.now); code(err) != "not_found" {
		t.Errorf("removed twice: %v", err)
	}
	var events []string
	if err := h.app.DB().NewQuery(`SELECT event FROM audit_log WHERE resource_type = 'Export' ORDER BY id`).Column(&events); err != nil ||
		strings.Join(events, " ") != "export.start export.start export.delete export.finish export.delete" {
		t.Errorf("audit events %v (%v)", events, err)
	}
}

// After a restart, an interrupted export starts again. An export during which the service is killed three times fails.
func TestInterruptedExportRestarts(t *testing.T) {
	h := newFixture(t, 45)
	id := h.start(fhirserver.ExportRequest{})
	ctx, stop := context.WithCancel(t.Context())
	h.source.before = func(_ core.App, page int) {
		if page == 4 {
			stop()
		}
	}
	h.engine.Run(ctx, h.app)
	if export := h.wantStatus(id, collections.ExportQueued); export.Attempts() != 0 || len(h.onDisk()) != 0 {
		t.Errorf("after the stop: %d attempts, files %v", export.Attempts(), h.onDisk())
	}
	h.source.before = func(_ core.App, page int) {
		if page%100 == 4 {
			panic("killed")
		}
	}
	for range 3 {
		h.source.pages, h.engine = 0, h.restart()
		func() {
			defer func() { _ = recover() }()
			h.engine.Run(t.Context(), h.app)
		}()
		h.wantStatus(id, collections.ExportRunning)
		if len(h.onDisk()) == 0 {
			t.Error("the killed export left no partial files")
		}
	}
	h.engine, h.source.before = h.restart(), nil
	over, end := context.WithCancel(t.Context())
	end()
	h.engine.Run(over, h.app)
	h.wantStatus(id, collections.ExportFailed)
	if len(h.onDisk()) != 0 {
		t.Errorf("files left: %v", h.onDisk())
	}
	// An export that was killed once completes.
	id = h.start(fhirserver.ExportRequest{})
	h.source.pages, h.source.before = 0, func(_ core.App, page int) {
		if page == 3 {
			panic("killed")
		}
	}
	func() {
		defer func() { _ = recover() }()
		h.engine.Run(t.Context(), h.app)
	}()
	h.wantStatus(id, collections.ExportRunning)
	h.engine, h.source.before = h.restart(), nil
	h.engine.Run(over, h.app) // requeues the interrupted export
	h.run()
	if got := h.files(h.wantStatus(id, collections.ExportComplete)); !strings.Contains(got, "Patient-3 5;") {
		t.Errorf("files %s", got)
	}
}

func TestFailedExportLeavesNoFiles(t *testing.T) {
	h := newFixture(t, 1)
	id := h.start(fhirserver.ExportRequest{})
	h.source.fails = errors.New("the disk is gone")
	if err := h.engine.RunQueued(t.Context(), h.app); err == nil {
		t.Error("a failed export returns no error")
	}
	if export := h.wantStatus(id, collections.ExportFailed); len(h.onDisk()) != 0 || h.files(export) != "" {
		t.Errorf("files left: %v", h.onDisk())
	}
}

// A client has at most three unfinished and ten stored exports, and cannot see another client's.
func TestExportLimits(t *testing.T) {
	h := newFixture(t, 1)
	var ids []string
	try := func() error {
		id, err := h.engine.Start(h.app, h.client, fhirserver.ExportRequest{Types: []string{"Patient"}, URL: "https://vigil.example.org/"}, audit.System(), h.now)
		if err == nil {
			ids = append(ids, id)
		}
		return err
	}
	throttled := func(err error) bool {
		f, ok := errors.AsType[*fault.Error](err)
		return ok && f.Kind == fault.Throttled && f.RetryAfter > 0
	}
	for n := range 10 {
		if n%3 == 0 && n > 0 {
			if err := try(); !throttled(err) {
				t.Fatalf("with three queued, a fourth returns %v", err)
			}
			h.run()
		}
		if err := try(); err != nil {
			t.Fatal(n, err)
		}
	}
	h.run()
	if err := try(); !throttled(err) {
		t.Errorf("with ten stored, another returns %v", err)
	}
	other := h.addClient()
	if _, err := h.engine.Find(h.app, other, ids[0], h.now); code(err) != "not_found" {
		t.Errorf("another client finds %v", err)
	}
	if err := h.engine.Remove(h.app, other, ids[0], audit.System(), h.now); code(err) != "not_found" {
		t.Errorf("another client removes %v", err)
	}
	if _, err := h.engine.Start(h.app, other, fhirserver.ExportRequest{Types: []string{"Patient"}, URL: "https://vigil.example.org/"}, audit.System(), h.now); err != nil {
		t.Errorf("exports of another client count toward the limit: %v", err)
	}
	if err := h.engine.Remove(h.app, h.client, ids[0], audit.System(), h.now); err != nil {
		t.Error(err)
	}
	if err := try(); err != nil {
		t.Errorf("after a removal, another returns %v", err)
	}
}

// An expired export is missing at once, and the next sweep removes its files. The sweep also removes exports of deleted clients and orphaned files.
func TestSweep(t *testing.T) {
	h := newFixture(t, 1)
	first := h.start(fhirserver.ExportRequest{})
	h.run()
	stray := filepath.Join(h.app.DataDir(), "exports", "stray")
	if err := os.MkdirAll(stray, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep := func(want int) {
		t.Helper()
		if n, err := h.engine.Sweep(h.app, h.now); err != nil || n != want {
			t.Errorf("%d swept, want %d (%v)", n, want, err)
		}
	}
	sweep(0)
	if _, err := os.Stat(stray); err == nil {
		t.Error("the orphaned folder remains")
	}
	h.now = h.now.Add(time.Hour - time.Second)
	h.wantStatus(first, collections.ExportComplete)
	h.now = h.now.Add(time.Second)
	if _, err := h.engine.Find(h.app, h.client, first, h.now); code(err) != "not_found" {
		t.Errorf("the expired export is found: %v", err)
	}
	second := h.start(fhirserver.ExportRequest{})
	h.run()
	if len(h.onDisk()) != 2 {
		t.Errorf("before the sweep: %v", h.onDisk())
	}
	sweep(1)
	if disk := h.onDisk(); len(disk) != 1 || !strings.Contains(disk[0], second) {
		t.Errorf("after the sweep: %v", disk)
	}
	if _, err := h.app.DB().NewQuery(`DELETE FROM clients`).Execute(); err != nil {
		t.Fatal(err)
	}
	sweep(1)
	sweep(0)
	if len(h.onDisk()) != 0 {
		t.Errorf("files of a deleted client: %v", h.onDisk())
	}
}

func (h *fixture) enroll() string {
	h.t.Helper()
	return vigiltest.Patient(h.t, h.app, dbx.Params{"mrn": rand.Text()})
}
