package fhirserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Run makes what waits, until ctx ends. What was half made when it ended, or when the service was killed, is made anew.
func (e *BulkExporter) Run(ctx context.Context, app core.App) {
	if err := e.begin(app); err != nil {
		e.options.Log.Error("exports not looked through", slog.Any("error", err))
	}
	ticker := time.NewTicker(unseen)
	defer ticker.Stop()
	for {
		if err := e.MakeWaiting(ctx, app); err != nil && ctx.Err() == nil {
			e.options.Log.Error("export not made", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-e.Signal:
		}
	}
}

// MakeWaiting makes what waits. One that cannot be made keeps none of the others waiting.
func (e *BulkExporter) MakeWaiting(ctx context.Context, app core.App) (failures error) {
	for ctx.Err() == nil {
		made, err := e.makeNext(ctx, app)
		failures = errors.Join(failures, err)
		if !made {
			break
		}
	}
	return failures
}

// begin queues again what the service left half made when it last ended.
func (e *BulkExporter) begin(app core.App) error {
	now := e.options.Clock()
	return app.RunInTransaction(func(tx core.App) error {
		givenUp, err := collections.RequeueExports(tx, mostAttempts, now, now.Add(e.options.Keep))
		for _, id := range givenUp {
			err = errors.Join(err, note(tx, audit.ExportFail, id, nil, now), removeFolder(app, id))
		}
		return err
	})
}

func note(tx core.App, event audit.Event, id string, changes audit.Changes, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: audit.System(), ResourceType: audit.ResourceExport, ResourceID: id, Changes: changes}, now)
}

// makeNext makes the export that waits longest; made is false when none waits.
func (e *BulkExporter) makeNext(ctx context.Context, app core.App) (made bool, err error) {
	export, err := collections.ClaimExport(app)
	if collections.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	under, stop := context.WithCancel(ctx)
	defer stop()
	m := &making{id: export.Id, stop: stop}
	e.setCurrent(m)
	defer e.setCurrent(nil)

	w := &writer{engine: e, app: app, export: export, making: m, key: export.FileKey()}
	at, err := w.write(under)
	if ctx.Err() != nil { // the service stops
		w.abandon()
		return false, errors.Join(removeFolder(app, export.Id), collections.ReleaseExport(app, export.Id))
	}
	if under.Err() != nil { // its client has called it off
		w.abandon()
		return true, removeFolder(app, export.Id)
	}
	return true, e.finish(app, w, at, err)
}

func (e *BulkExporter) setCurrent(m *making) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current = m
}

// finish notes what became of an export, and removes the files of one that came to nothing.
func (e *BulkExporter) finish(app core.App, w *writer, at time.Time, failure error) error {
	now := e.options.Clock()
	end := collections.ExportResult{Status: collections.ExportComplete, At: now, TransactionTime: at, Files: w.files, Expires: now.Add(e.options.Keep)}
	event := audit.ExportFinish
	if failure != nil {
		w.abandon()
		end.Status, end.Files, end.TransactionTime, event = collections.ExportFailed, nil, time.Time{}, audit.ExportFail
	}
	made := false
	err := app.RunInTransaction(func(tx core.App) error {
		done, err := collections.FinishExport(tx, w.export.Id, end)
		if err != nil || !done {
			return err
		}
		made = failure == nil
		return note(tx, event, w.export.Id, audit.Changes{"resources": {New: w.making.done.Load()}}, now)
	})
	if err != nil || !made {
		err = errors.Join(err, removeFolder(app, w.export.Id))
	}
	return errors.Join(failure, err)
}

// writer writes the files of one export.
type writer struct {
	engine *BulkExporter
	app    core.App
	export *collections.Export
	making *making
	key    phi.Text

	files []collections.ExportFile
	open  *file // the last of the files, while it is written
}

// write writes all files, and says which moment they show.
func (w *writer) write(ctx context.Context) (at time.Time, err error) {
	if err := removeFolder(w.app, w.export.Id); err != nil { // what an attempt before has left
		return at, err
	}
	err = collections.Snapshot(ctx, w.app, func(tx core.App) error {
		at = w.engine.options.Clock()
		return collections.MarkChangePosition(tx, at)
	}, func(then core.App) error {
		rest := async.ThrottleAlways()
		for _, kind := range w.export.Types() {
			if err := w.writeType(ctx, then, kind, rest); err != nil {
				return err
			}
		}
		return w.writeIgnored()
	})
	if err == nil {
		err = w.close()
	}
	return at, err
}

// writeType writes the resources of a type, what cannot be shown of them, and what was deleted of them.
func (w *writer) writeType(ctx context.Context, then core.App, kind string, rest *async.Throttle) error {
	since := w.export.Since()
	var unreadable []string
	for after := ""; ; {
		page, err := w.engine.options.Resources.Read(ctx, then, kind, since, after)
		if err != nil {
			return fmt.Errorf("read %s: %w", kind, err)
		}
		for _, r := range page.Resources {
			if r.Unreadable {
				unreadable = append(unreadable, kind+"/"+r.ID)
				continue
			}
			if err := w.add(Output, kind, r.Body); err != nil {
				return err
			}
			w.making.done.Add(1)
		}
		if after = page.Next; after == "" {
			break
		}
		if err := rest.Rest(ctx); err != nil {
			return err
		}
	}
	for _, reference := range unreadable {
		if err := w.addIssue(fhir.Issue{Type: "exception", Code: collections.UnreadableCode, Text: reference + " cannot be opened and is left out."}); err != nil {
			return err
		}
	}
	if since.IsZero() {
		return nil
	}
	return w.writeDeleted(ctx, then, kind, since)
}

// writeDeleted writes what was deleted of a type, as the transactions that would delete it elsewhere.
func (w *writer) writeDeleted(ctx context.Context, then core.App, kind string, since time.Time) error {
	deleted, complete, err := w.engine.options.Resources.Deleted(ctx, then, kind, since)
	if err != nil {
		return fmt.Errorf("read deleted %s: %w", kind, err)
	}
	if !complete {
		err := w.addIssue(fhir.Issue{Severity: "warning", Type: "incomplete", Code: "deletions_unknown", Text: "What was deleted of " + kind + " so long ago is not known any more."})
		if err != nil {
			return err
		}
	}
	for _, reference := range deleted {
		line, err := json.Marshal(map[string]any{
			"resourceType": "Bundle", "type": "transaction",
			"entry": []any{map[string]any{"request": map[string]string{"method": "DELETE", "url": reference}}},
		})
		if err != nil {
			return err
		}
		if err := w.add(Deleted, "Bundle", line); err != nil {
			return err
		}
	}
	return nil
}

// writeIgnored says what was asked for and passed over.
func (w *writer) writeIgnored() error {
	for _, name := range w.export.Ignored() {
		if err := w.addIssue(fhir.Issue{Severity: "warning", Type: "not-supported", Code: "ignored", Text: name + " is not supported, and was passed over."}); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addIssue(issue fhir.Issue) error {
	line, err := fhir.OperationOutcome(issue)
	if err != nil {
		return err
	}
	return w.add(Errors, "OperationOutcome", line)
}

// add writes a line into the file of a kind and type: the one that is open, or the next.
func (w *writer) add(kind, resource string, line []byte) error {
	last := len(w.files) - 1
	if w.open == nil || w.files[last].Kind != kind || w.files[last].Type != resource || w.files[last].Count >= w.engine.options.PerFile {
		if err := w.close(); err != nil {
			return err
		}
		next := collections.ExportFile{Name: w.nameOf(kind, resource), Type: resource, Kind: kind}
		opened, err := create(folder(w.app, w.export.Id), next.Name, w.key)
		if err != nil {
			return err
		}
		w.open, w.files, last = opened, append(w.files, next), last+1
	}
	if _, err := w.open.Write(line); err != nil {
		return fmt.Errorf("write file of an export: %w", err)
	}
	if err := w.open.WriteByte('\n'); err != nil {
		return fmt.Errorf("write file of an export: %w", err)
	}
	w.files[last].Count++
	return nil
}

// nameOf is what a file is called: its type, and its number among all.
func (w *writer) nameOf(kind, resource string) string {
	if kind != Output {
		resource = kind
	}
	return resource + "-" + strconv.Itoa(len(w.files)+1)
}

func (w *writer) close() error {
	if w.open == nil {
		return nil
	}
	finished := w.open
	w.open = nil
	if err := finished.finish(); err != nil {
		return fmt.Errorf("finish file of an export: %w", err)
	}
	return nil
}

func (w *writer) abandon() {
	if w.open != nil {
		w.open.abandon()
		w.open = nil
	}
}
