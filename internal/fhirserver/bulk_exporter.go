// Package exports knows how FHIR resources leave in bulk: what a client may ask for, how what it asked for becomes files that show one moment, how
// they lie on the disk, and when they go. How a resource is found and what it looks like is handed to it as [Resources]; it refuses to know.
//
// Files are made once, from one moment of the database, and are the same however often they are fetched. Each export has a key of its own, which is
// sealed in the database like every health value: its files are of no use without it, and with the export their key is gone.
// Source: docs/decisions/fhir.md, "Bulk export".
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

// The kinds of files, as the manifest calls them.
const (
	Output  = "output"
	Errors  = "error"
	Deleted = "deleted"
)

const (
	// mostUnfinished and maxCached bound what one client has under way, and what lies on the disk for it.
	mostUnfinished = 3
	mostKept       = 10
	// mostAttempts bounds how often an export is begun that a service does not outlive.
	mostAttempts = 3
	// turnTime is how long one export may well take: who has too many comes back then.
	turnTime = 30 * time.Second
	// unseen is how often the queue is looked through although nobody has called.
	unseen = time.Minute
)

// Resource is one resource, as a line of a file.
type Resource struct {
	ID         string
	Body       []byte // one line of JSON, without its end
	Unreadable bool   // a stored value cannot be opened, so there is no body
}

// Page is some resources of a type, in the order in which they are read, and where the next ones begin; "" is the end.
type Page struct {
	Resources []Resource
	Next      string
}

// Resources finds and renders what can be exported.
type Resources interface {
	// Read returns the resources of a type that were changed after a time (zero is all) and follow a place; the first place is "".
	Read(ctx context.Context, app core.App, kind string, since time.Time, after string) (Page, error)
	// Deleted returns the resources of a type that were deleted after a time, as types and ids ("Patient/…"); complete is false when it is not known any
	// more what was deleted then.
	Deleted(ctx context.Context, app core.App, kind string, since time.Time) (references []string, complete bool, err error)
}

// Options of the engine.
type Options struct {
	Resources Resources
	Keep      time.Duration // how long the files of an export that was made are kept
	PerFile   int           // how many resources a file holds at most; 0 is 100,000
	Clock     func() time.Time
	Log       *slog.Logger
}

// BulkExporter keeps exports and makes them, one at a time. It is safe for concurrent use.
type BulkExporter struct {
	async.Signal
	options Options

	mu      sync.Mutex
	current *making // the export that is being made; nil for none
}

// making is an export that is being made.
type making struct {
	id   string
	done atomic.Int64 // resources
	stop context.CancelFunc
}

// New returns an engine.
func New(o Options) *BulkExporter {
	if o.PerFile == 0 {
		o.PerFile = 100_000
	}
	return &BulkExporter{Signal: async.NewSignal(), options: o}
}

// folder is where the files of an export lie.
func folder(app core.App, id string) string { return filepath.Join(folders(app), id) }

func folders(app core.App) string { return filepath.Join(app.DataDir(), "exports") }

// Start stores an export that a client asks for. It is made later.
func (e *BulkExporter) Start(app core.App, client string, asked ExportRequest, by audit.Actor, now time.Time) (id string, err error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("make the key of an export: %w", err)
	}
	id = collections.NewUUID()
	err = app.RunInTransaction(func(tx core.App) error {
		if err := mayStart(tx, client, now); err != nil {
			return err
		}
		err := collections.AddExport(tx, collections.ExportDraft{
			ID: id, Client: client, Request: asked.URL, Types: asked.Types, Ignored: asked.Ignored, Since: asked.Since, FileKey: phi.Text(key.String()),
		}, now)
		if err != nil {
			return err
		}
		changed := audit.Changes{"types": {New: asked.Types}}
		if !asked.Since.IsZero() {
			changed["since"] = audit.Change{New: collections.Instant(asked.Since)}
		}
		return audit.Append(tx, audit.Entry{Event: audit.ExportStart, Actor: by, ResourceType: audit.ResourceExport, ResourceID: id, Changes: changed}, now)
	})
	if err == nil {
		e.Wake()
	}
	return id, err
}

func mayStart(tx core.App, client string, now time.Time) error {
	kept, unfinished, soonest, err := collections.ExportsOfClient(tx, client, now)
	switch {
	case err != nil:
		return err
	case unfinished >= mostUnfinished:
		return fault.New(fault.Throttled, "throttled", "Three exports of this client are still to be made.").After(turnTime)
	case kept >= mostKept:
		return fault.New(fault.Throttled, "throttled", "Ten exports of this client are kept: delete those that were fetched.").After(max(turnTime, soonest.Sub(now)))
	}
	return nil
}

// Find finds an export of a client. Those of others do not exist for it.
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

// Progress is how many resources are in the files of an export that is being made.
func (e *BulkExporter) Progress(id string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil || e.current.id != id {
		return 0
	}
	return e.current.done.Load()
}

// Remove calls an export off, or throws it away once it was fetched.
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
	e.callOff(id)
	return removeFolder(app, id)
}

// callOff ends the making of an export.
func (e *BulkExporter) callOff(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != nil && e.current.id == id {
		e.current.stop()
	}
}

// Sweep removes the exports whose time is over or whose client is no more, and files that belong to none.
func (e *BulkExporter) Sweep(app core.App, now time.Time) (removed int, err error) {
	gone, err := collections.ExpiredExports(app, now)
	if err != nil {
		return 0, err
	}
	for _, id := range gone {
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
		e.callOff(id)
	}
	return removed, e.removeStrays(app)
}
