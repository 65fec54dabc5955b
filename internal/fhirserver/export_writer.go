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

// Run runs queued exports until ctx ends. An export that was interrupted, also by a kill of the service, starts again from the beginning.
func (e *BulkExporter) Run(ctx context.Context, app core.App) {
	if err := e.requeueInterrupted(app); err != nil {
		e.options.Log.Error("the bulk exporter could not requeue interrupted exports; they stay in progress until the next start", slog.Any("error", err))
	}
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if err := e.RunQueued(ctx, app); err != nil && ctx.Err() == nil {
			e.options.Log.Error("a bulk export failed; its status reports the failure, and the client may request it again", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-e.Signal:
		}
	}
}

// RunQueued runs all queued exports. A failed export does not stop the others.
func (e *BulkExporter) RunQueued(ctx context.Context, app core.App) (failures error) {
	for ctx.Err() == nil {
		ran, err := e.runNext(ctx, app)
		failures = errors.Join(failures, err)
		if !ran {
			break
		}
	}
	return failures
}

// requeueInterrupted requeues exports that were running when the service last stopped, and fails those without attempts left.
func (e *BulkExporter) requeueInterrupted(app core.App) error {
	now := e.options.Clock()
	return app.RunInTransaction(func(tx core.App) error {
		failed, err := collections.RequeueExports(tx, maxAttempts, now, now.Add(e.options.Retention))
		for _, id := range failed {
			err = errors.Join(err, auditExport(tx, audit.ExportFail, id, nil, now), removeFolder(app, id))
		}
		return err
	})
}

func auditExport(tx core.App, event audit.Event, id string, changes audit.Changes, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: audit.System(), ResourceType: audit.ResourceExport, ResourceID: id, Changes: changes}, now)
}

// runNext runs the oldest queued export; ran is false if none is queued.
func (e *BulkExporter) runNext(ctx context.Context, app core.App) (ran bool, err error) {
	export, err := collections.LeaseExport(app)
	if collections.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	exportCtx, stop := context.WithCancel(ctx)
	defer stop()
	m := &runningExport{id: export.Id, stop: stop}
	e.setCurrent(m)
	defer e.setCurrent(nil)

	w := &exportWriter{engine: e, app: app, export: export, running: m, key: export.FileKey()}
	at, err := w.write(exportCtx)
	if ctx.Err() != nil { // the service stops
		w.abandon()
		return false, errors.Join(removeFolder(app, export.Id), collections.ReleaseExport(app, export.Id))
	}
	if exportCtx.Err() != nil { // the client canceled the export
		w.abandon()
		return true, removeFolder(app, export.Id)
	}
	return true, e.finish(app, w, at, err)
}

func (e *BulkExporter) setCurrent(m *runningExport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current = m
}

// finish stores the result of an export, and removes the files of a failed or removed one.
func (e *BulkExporter) finish(app core.App, w *exportWriter, at time.Time, failure error) error {
	now := e.options.Clock()
	end := collections.ExportResult{Status: collections.ExportComplete, At: now, TransactionTime: at, Files: w.files, Expires: now.Add(e.options.Retention)}
	event := audit.ExportFinish
	if failure != nil {
		w.abandon()
		end.Status, end.Files, end.TransactionTime, event = collections.ExportFailed, nil, time.Time{}, audit.ExportFail
	}
	completed := false
	err := app.RunInTransaction(func(tx core.App) error {
		done, err := collections.FinishExport(tx, w.export.Id, end)
		if err != nil || !done {
			return err
		}
		completed = failure == nil
		return auditExport(tx, event, w.export.Id, audit.Changes{"resources": {New: w.running.done.Load()}}, now)
	})
	if err != nil || !completed {
		err = errors.Join(err, removeFolder(app, w.export.Id))
	}
	return errors.Join(failure, err)
}

// exportWriter writes the files of one export.
type exportWriter struct {
	engine  *BulkExporter
	app     core.App
	export  *collections.Export
	running *runningExport
	key     phi.Text

	files []collections.ExportFile
	open  *file // the file being written, the last of files
}

// write writes all files from one snapshot and returns the time of the snapshot.
func (w *exportWriter) write(ctx context.Context) (at time.Time, err error) {
	if err := removeFolder(w.app, w.export.Id); err != nil { // left by an earlier attempt
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

// writeType writes the resources of a type, an issue for each unreadable one, and the deletions.
func (w *exportWriter) writeType(ctx context.Context, then core.App, kind string, rest *async.Throttle) error {
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
			w.running.done.Add(1)
		}
		if after = page.Next; after == "" {
			break
		}
		if err := rest.Rest(ctx); err != nil {
			return err
		}
	}
	for _, reference := range unreadable {
		if err := w.addIssue(fhir.Issue{Type: "exception", Code: collections.UnreadableCode, Text: reference + " cannot be decrypted and is omitted."}); err != nil {
			return err
		}
	}
	if since.IsZero() {
		return nil
	}
	return w.writeDeleted(ctx, then, kind, since)
}

// writeDeleted writes the deletions of a type as transaction Bundles with DELETE requests.
func (w *exportWriter) writeDeleted(ctx context.Context, then core.App, kind string, since time.Time) error {
	deleted, complete, err := w.engine.options.Resources.Deleted(ctx, then, kind, since)
	if err != nil {
		return fmt.Errorf("read deleted %s: %w", kind, err)
	}
	if !complete {
		err := w.addIssue(fhir.Issue{Severity: "warning", Type: "incomplete", Code: "deletions_unknown", Text: "Deletions of " + kind + " before the oldest recorded change are not listed."})
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

// writeIgnored writes a warning for each ignored parameter or type.
func (w *exportWriter) writeIgnored() error {
	for _, name := range w.export.Ignored() {
		if err := w.addIssue(fhir.Issue{Severity: "warning", Type: "not-supported", Code: "ignored", Text: name + " is not supported and was ignored."}); err != nil {
			return err
		}
	}
	return nil
}

func (w *exportWriter) addIssue(issue fhir.Issue) error {
	line, err := fhir.OperationOutcome(issue)
	if err != nil {
		return err
	}
	return w.add(Errors, "OperationOutcome", line)
}

// add writes a line to the open file, or to a new one if the kind or type differs or the file is full.
func (w *exportWriter) add(kind, resource string, line []byte) error {
	last := len(w.files) - 1
	if w.open == nil || w.files[last].Kind != kind || w.files[last].Type != resource || w.files[last].Count >= w.engine.options.MaxPerFile {
		if err := w.close(); err != nil {
			return err
		}
		next := collections.ExportFile{Name: w.nameOf(kind, resource), Type: resource, Kind: kind}
		opened, err := create(exportFolder(w.app, w.export.Id), next.Name, w.key)
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

// nameOf returns the name of the next file: its type and its number in the export.
func (w *exportWriter) nameOf(kind, resource string) string {
	if kind != Output {
		resource = kind
	}
	return resource + "-" + strconv.Itoa(len(w.files)+1)
}

func (w *exportWriter) close() error {
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

func (w *exportWriter) abandon() {
	if w.open != nil {
		w.open.abandon()
		w.open = nil
	}
}
