// Package warehouse exports selected tables each night to a folder or bucket for a data warehouse, so that queries across practices run there. A row
// is in the file of the practice's day on which it was created. When a row changes, the whole file of its day is written again, so repeated exports
// of a day produce the same file.
//
// Exports contain no names, identifiers or free text; ids are hashed under a key that only the practice's database has.
// Source: docs/decisions/operating.md, "Warehouse".
package warehouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// layout is the version of the file layout; a new version exports every day again.
	layout = 1
	// pageRows is the number of rows read at once.
	pageRows = 1000
	// maxCommitDelay is the longest time between the timestamp of a write and its commit.
	// Source: docs/decisions/limits.md, "Request size and time".
	maxCommitDelay = 2 * time.Minute
)

// Resources renders rows as FHIR, as the bulk export does.
type Resources interface {
	ByIDs(app core.App, kind string, ids []string) ([]fhirserver.ExportLine, error)
}

// Options of the engine.
type Options struct {
	Practice  string // the practice's name in file names
	Format    string
	Tables    []string // empty: all tables of the format
	Key       []byte   // used by this practice's database only
	Zone      *time.Location
	Resources Resources
	// Open opens the destination.
	Open func() (*backup.BlobStore, error)
}

// Engine exports tables. The caller must prevent concurrent runs.
type Engine struct {
	options    Options
	tables     []*collections.WarehouseTable
	pseudonyms pseudonymizer
}

// Tables returns the tables that can be exported, by name. A new kind of reading is exported with its columns automatically.
func Tables() []*collections.WarehouseTable {
	var measured, qualifiers []string
	for _, p := range vitals.Parameters {
		measured = append(measured, p.Column)
	}
	for _, m := range vitals.Qualifiers {
		qualifiers = append(qualifiers, m.Name)
	}
	slices.Sort(qualifiers)
	return slices.SortedFunc(slices.Values(append(slices.Clone(collections.WarehouseTables), collections.WarehouseReadings(measured, qualifiers))),
		func(a, b *collections.WarehouseTable) int { return strings.Compare(a.Name, b.Name) })
}

// New returns an engine.
func New(o Options) *Engine {
	e := &Engine{options: o, pseudonyms: pseudonymizer{o.Key}}
	for _, t := range Tables() {
		if (t.Resource != "" || o.Format != FHIR) && (len(o.Tables) == 0 || slices.Contains(o.Tables, t.Name)) {
			e.tables = append(e.tables, t)
		}
	}
	return e
}

// Done counts what a run has written.
type Done struct{ Files, Rows int }

// Exported is the key of the file count in [Done.Counts].
const Exported = "exported"

// Counts returns the counts for the job run record.
func (d Done) Counts() map[string]int {
	return map[string]int{Exported: d.Files, "rows": d.Rows}
}

// state is stored at the destination: the end of the last complete run, and its settings.
type state struct {
	Layout   int       `json:"layout"`
	Format   string    `json:"format"`
	Tables   []string  `json:"tables"`
	TimeZone string    `json:"time_zone"`
	Until    time.Time `json:"until"`
}

func (e *Engine) state(until time.Time) state {
	s := state{Layout: layout, Format: e.options.Format, TimeZone: e.options.Zone.String(), Until: until.UTC()}
	for _, t := range e.tables {
		s.Tables = append(s.Tables, t.Name)
	}
	return s
}

func (s state) sameSettings(other state) bool {
	return s.Layout == other.Layout && s.Format == other.Format && s.TimeZone == other.TimeZone && slices.Equal(s.Tables, other.Tables)
}

// Run exports the completed days that are new or have changed rows. afresh exports every day again.
func (e *Engine) Run(ctx context.Context, app core.App, afresh bool, now time.Time) (Done, error) {
	return e.audited(app, now, audit.Changes{"afresh": {New: afresh}}, func(s *exportRun) error {
		last, err := e.readState(ctx, s.destination)
		if err != nil {
			return err
		}
		since, first := time.Time{}, time.Time{}
		if !afresh && last.sameSettings(e.state(now)) {
			since, first = last.Until.Add(-maxCommitDelay), collections.StartOfDay(last.Until.In(e.options.Zone))
		}
		for _, t := range e.tables {
			days, err := e.days(app, t, since, first, now)
			if err != nil {
				return err
			}
			for _, day := range days {
				if err := s.write(ctx, app, t, day); err != nil {
					return err
				}
			}
		}
		return e.writeState(ctx, s.destination, e.state(now))
	})
}

// ErrDayNotOver reports a day that has not ended, so that its file would be incomplete.
var ErrDayNotOver = errors.New("the day is not over")

// Day exports one day, changed or not.
func (e *Engine) Day(ctx context.Context, app core.App, day, now time.Time) (Done, error) {
	if !collections.StartOfNextDay(day).Before(now) {
		return Done{}, ErrDayNotOver
	}
	return e.audited(app, now, audit.Changes{"date": {New: day.Format(time.DateOnly)}}, func(s *exportRun) error {
		for _, t := range e.tables {
			if err := s.write(ctx, app, t, day); err != nil {
				return err
			}
		}
		return nil
	})
}

// audited opens the destination, runs work, and records in the audit trail what was exported, even if work failed.
func (e *Engine) audited(app core.App, now time.Time, changes audit.Changes, work func(*exportRun) error) (Done, error) {
	at, err := e.options.Open()
	if err != nil {
		return Done{}, err
	}
	s := &exportRun{engine: e, destination: at, now: now, throttle: async.ThrottleAlways()}
	failure := errors.Join(work(s), at.Close())
	entry := audit.Entry{Event: audit.WarehouseExport, Actor: audit.System(), ResourceType: audit.ResourceExport, ResourceID: e.options.Practice, Changes: changes}
	changes["to"], changes["format"], changes["tables"] = audit.Change{New: at.Where()}, audit.Change{New: e.options.Format}, audit.Change{New: e.state(now).Tables}
	changes["files"], changes["rows"] = audit.Change{New: s.done.Files}, audit.Change{New: s.done.Rows}
	if failure != nil {
		entry.Outcome = audit.SeriousFailure
	}
	noted := app.RunInTransaction(func(tx core.App) error { return audit.Append(tx, entry, now) })
	return s.done, errors.Join(failure, noted)
}

// days returns the days to export from a table, in order: those completed since first, and those with rows changed after since.
func (e *Engine) days(app core.App, t *collections.WarehouseTable, since, first, now time.Time) ([]time.Time, error) {
	hours, err := t.Hours(app, since)
	if err != nil {
		return nil, err
	}
	zone, today := e.options.Zone, collections.StartOfDay(now.In(e.options.Zone))
	var days []time.Time
	for _, hour := range hours { // an hour of UTC can overlap two days
		days = append(days, collections.StartOfDay(hour.In(zone)), collections.StartOfDay(hour.Add(time.Hour-1).In(zone)))
	}
	for day := first; !first.IsZero() && day.Before(today); day = collections.StartOfNextDay(day) {
		days = append(days, day)
	}
	days = slices.DeleteFunc(days, func(day time.Time) bool { return !day.Before(today) })
	slices.SortFunc(days, time.Time.Compare)
	return slices.CompactFunc(days, time.Time.Equal), nil
}

func (e *Engine) stateName() string { return "practice=" + e.options.Practice + "/export.json" }

func (e *Engine) readState(ctx context.Context, at *backup.BlobStore) (s state, err error) {
	file, err := at.Read(ctx, e.stateName())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the export state: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return s, fmt.Errorf("read the export state: %w", err)
	}
	if json.Unmarshal(text, &s) != nil {
		return state{}, nil // unreadable state: export everything again
	}
	return s, nil
}

func (e *Engine) writeState(ctx context.Context, at *backup.BlobStore, s state) error {
	err := at.Write(ctx, e.stateName(), func(w io.Writer) error { return json.NewEncoder(w).Encode(s) })
	if err != nil {
		return fmt.Errorf("store the export state: %w", err)
	}
	return nil
}
