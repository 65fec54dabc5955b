package fhirserver

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// The kinds of files, as named in the manifest.
const (
	Output  = "output"
	Errors  = "error"
	Deleted = "deleted"
)

const (
	// maxUnfinished and maxKept bound the unfinished exports and the stored exports of one client.
	maxUnfinished = 3
	maxKept       = 10
	// maxAttempts bounds the restarts of an export during which the service was killed.
	maxAttempts = 3
	// throttleDelay is the Retry-After of a client with too many exports: the usual duration of one export.
	throttleDelay = 30 * time.Second
	// sweepInterval is the interval between queue checks without a wake-up.
	sweepInterval = time.Minute
)

// ExportLine is one line of an export file.
type ExportLine struct {
	ID         string
	Body       []byte // one line of JSON, without the newline
	Unreadable bool   // a sealed value cannot be opened, so Body is nil
}

// ExportPage holds resources of a type in read order and the position of the next page; "" is the end.
type ExportPage struct {
	Resources []ExportLine
	Next      string
}

// Resources reads and renders the resources of an export.
type Resources interface {
	// Read returns the resources of a type that changed after since (zero means all) and follow a position; the first position is "".
	Read(ctx context.Context, app core.App, kind string, since time.Time, after string) (ExportPage, error)
	// Deleted returns references ("Patient/…") to the resources of a type that were deleted after since. complete is false if the record of deletions
	// does not reach back that far.
	Deleted(ctx context.Context, app core.App, kind string, since time.Time) (references []string, complete bool, err error)
}

// BulkExporterOptions configure a BulkExporter.
type BulkExporterOptions struct {
	Resources  Resources
	Retention  time.Duration // how long the files of a finished export are kept
	MaxPerFile int           // maximum resources of a file; 0 means 100,000
	Clock      func() time.Time
	Log        *slog.Logger
}

// BulkExporter queues exports and runs them one at a time. It is safe for concurrent use.
type BulkExporter struct {
	async.Signal
	options BulkExporterOptions

	mu      sync.Mutex
	current *runningExport // nil if no export is running
}

// runningExport is the export that is being written.
type runningExport struct {
	id   string
	done atomic.Int64 // resources written
	stop context.CancelFunc
}

// NewBulkExporter returns a BulkExporter.
func NewBulkExporter(o BulkExporterOptions) *BulkExporter {
	if o.MaxPerFile == 0 {
		o.MaxPerFile = 100_000
	}
	return &BulkExporter{Signal: async.NewSignal(), options: o}
}

// exportFolder returns the folder of an export's files.
func exportFolder(app core.App, id string) string { return filepath.Join(exportsFolder(app), id) }

func exportsFolder(app core.App) string { return filepath.Join(app.DataDir(), "exports") }

// Start queues an export for a client and returns its id.
func (e *BulkExporter) Start(app core.App, client string, request ExportRequest, by audit.Actor, now time.Time) (id string, err error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("generate the key of an export: %w", err)
	}
	id = collections.NewUUID()
	err = app.RunInTransaction(func(tx core.App) error {
		if err := checkLimits(tx, client, now); err != nil {
			return err
		}
		err := collections.AddExport(tx, collections.ExportDraft{
			ID: id, Client: client, Request: request.URL, Types: request.Types, Ignored: request.Ignored, Since: request.Since, FileKey: phi.Text(key.String()),
		}, now)
		if err != nil {
			return err
		}
		changed := audit.Changes{"types": {New: request.Types}}
		if !request.Since.IsZero() {
			changed["since"] = audit.Change{New: collections.FormatInstant(request.Since)}
		}
		return audit.Append(tx, audit.Entry{Event: audit.ExportStart, Actor: by, ResourceType: audit.ResourceExport, ResourceID: id, Changes: changed}, now)
	})
	if err == nil {
		e.Wake()
	}
	return id, err
}

func checkLimits(tx core.App, client string, now time.Time) error {
	kept, unfinished, soonest, err := collections.ExportsOfClient(tx, client, now)
	switch {
	case err != nil:
		return err
	case unfinished >= maxUnfinished:
		return fault.New(fault.Throttled, "throttled", "This client has three unfinished exports. Wait for one to finish.").After(throttleDelay)
	case kept >= maxKept:
		return fault.New(fault.Throttled, "throttled", "Ten exports of this client are stored. Delete those that you have downloaded.").After(max(throttleDelay, soonest.Sub(now)))
	}
	return nil
}

// Find returns an export of a client. It reports exports of other clients as missing.
func (e *BulkExporter) Find(app core.App, client, id string, now time.Time) (*collections.Export, error) {
	export, err := collections.FindExport(app, id, now)
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	if export.Client() != client {
		return nil, fault.Missing()
	}
	return export, nil
}

// Progress returns the number of resources that a running export has written.
func (e *BulkExporter) Progress(id string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil || e.current.id != id {
		return 0
	}
	return e.current.done.Load()
}

// Remove cancels a running export or deletes a finished one.
func (e *BulkExporter) Remove(app core.App, client, id string, by audit.Actor, now time.Time) error {
	err := app.RunInTransaction(func(tx core.App) error {
		if _, err := e.Find(tx, client, id, now); err != nil {
			return err
		}
		if done, err := collections.RemoveExport(tx, id); err != nil || !done {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.ExportDelete, Actor: by, ResourceType: audit.ResourceExport, ResourceID: id}, now)
	})
	if err != nil {
		return err
	}
	e.cancel(id)
	return removeFolder(app, id)
}

// cancel stops an export if it is running.
func (e *BulkExporter) cancel(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != nil && e.current.id == id {
		e.current.stop()
	}
}

// Sweep removes expired exports, exports of deleted clients, and files without an export.
func (e *BulkExporter) Sweep(app core.App, now time.Time) (removed int, err error) {
	expired, err := collections.ExpiredExports(app, now)
	if err != nil {
		return 0, err
	}
	for _, id := range expired {
		err := app.RunInTransaction(func(tx core.App) error {
			if done, err := collections.RemoveExport(tx, id); err != nil || !done {
				return err
			}
			removed++
			return audit.Append(tx, audit.Entry{Event: audit.ExportDelete, Actor: audit.System(), ResourceType: audit.ResourceExport, ResourceID: id}, now)
		})
		if err != nil {
			return removed, err
		}
		e.cancel(id)
	}
	return removed, e.removeOrphans(app)
}
