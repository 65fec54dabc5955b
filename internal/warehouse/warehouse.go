// Package warehouse knows what leaves for a data warehouse each night: chosen tables, row for row, as files in a folder or a bucket, so that questions
// across practices are asked there and not of the service. A row lies with the day of the practice on which it was made, and is in one file only; the
// file of a day is written anew, whole, when one of its rows has changed. So the same day is the same file however often it is written.
//
// It refuses to let anybody out: no name, no number of a record, no free text; ids are hashed under a key that the practice's database alone has.
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
	// layout is that of the files: with another one everything is written anew.
	layout = 1
	// onePage is how many rows are held at once.
	onePage = 1000
	// longestLate is how long a write may take from the moment that it is dated by until it is committed.
	// Source: docs/decisions/limits.md, "Request size and time".
	longestLate = 2 * time.Minute
)

// Resources renders rows as FHIR, as the bulk export does.
type Resources interface {
	Named(app core.App, kind string, ids []string) ([]fhirserver.Resource, error)
}

// Options of the engine.
type Options struct {
	Practice  string // as the files' names call it
	Format    string
	Tables    []string // none: all that the format has
	Key       []byte   // of this practice's database alone
	Zone      *time.Location
	Resources Resources
	// Open opens the place of the files.
	Open func() (*backup.BlobStore, error)
}

// Engine exports. Two runs at once are for its caller to prevent.
type Engine struct {
	options Options
	tables  []*collections.WarehouseTable
	veil    veil
}

// Tables are those that can leave, by name. A kind of reading that is added leaves with its columns.
func Tables() []*collections.WarehouseTable {
	var measured, said []string
	for _, p := range vitals.Parameters {
		measured = append(measured, p.Column)
	}
	for _, m := range vitals.Qualifiers {
		said = append(said, m.Name)
	}
	slices.Sort(said)
	return slices.SortedFunc(slices.Values(append(slices.Clone(collections.WarehouseTables), collections.WarehouseReadings(measured, said))),
		func(a, b *collections.WarehouseTable) int { return strings.Compare(a.Name, b.Name) })
}

// New returns an engine.
func New(o Options) *Engine {
	e := &Engine{options: o, veil: veil{o.Key}}
	for _, t := range Tables() {
		if (t.Resource != "" || o.Format != FHIR) && (len(o.Tables) == 0 || slices.Contains(o.Tables, t.Name)) {
			e.tables = append(e.tables, t)
		}
	}
	return e
}

// Done is what a run has written.
type Done struct{ Files, Rows int }

// Exported is what a run counts that wrote all there was to write.
const Exported = "exported"

// Counts are for the note of the run.
func (d Done) Counts() map[string]int {
	return map[string]int{Exported: d.Files, "rows": d.Rows}
}

// state is what the place knows of the last run: how far it came, and how its files are written.
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

func (s state) like(other state) bool {
	return s.Layout == other.Layout && s.Format == other.Format && s.TimeZone == other.TimeZone && slices.Equal(s.Tables, other.Tables)
}

// Run writes the days that are over and have not been written, and those before of which a row has changed since. afresh writes all there are.
func (e *Engine) Run(ctx context.Context, app core.App, afresh bool, now time.Time) (Done, error) {
	return e.audited(app, now, audit.Changes{"afresh": {New: afresh}}, func(s *shipment) error {
		last, err := e.readState(ctx, s.place)
		if err != nil {
			return err
		}
		since, first := time.Time{}, time.Time{}
		if !afresh && last.like(e.state(now)) {
			since, first = last.Until.Add(-longestLate), collections.StartOfDay(last.Until.In(e.options.Zone))
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
		return e.writeState(ctx, s.place, e.state(now))
	})
}

// ErrNotOver is of a day that has not ended: its file would miss what is still to come.
var ErrNotOver = errors.New("the day is not over")

// Day writes one day, whether anything has changed or not.
func (e *Engine) Day(ctx context.Context, app core.App, day, now time.Time) (Done, error) {
	if !collections.StartOfNextDay(day).Before(now) {
		return Done{}, ErrNotOver
	}
	return e.audited(app, now, audit.Changes{"date": {New: day.Format(time.DateOnly)}}, func(s *shipment) error {
		for _, t := range e.tables {
			if err := s.write(ctx, app, t, day); err != nil {
				return err
			}
		}
		return nil
	})
}

// audited opens the place, and notes in the trail what has left, however it ended.
func (e *Engine) audited(app core.App, now time.Time, said audit.Changes, work func(*shipment) error) (Done, error) {
	at, err := e.options.Open()
	if err != nil {
		return Done{}, err
	}
	s := &shipment{engine: e, place: at, now: now, rest: async.ThrottleAlways()}
	failure := errors.Join(work(s), at.Close())
	entry := audit.Entry{Event: audit.WarehouseExport, Actor: audit.System(), ResourceType: audit.ResourceExport, ResourceID: e.options.Practice, Changes: said}
	said["to"], said["format"], said["tables"] = audit.Change{New: at.Where()}, audit.Change{New: e.options.Format}, audit.Change{New: e.state(now).Tables}
	said["files"], said["rows"] = audit.Change{New: s.done.Files}, audit.Change{New: s.done.Rows}
	if failure != nil {
		entry.Outcome = audit.SeriousFailure
	}
	noted := app.RunInTransaction(func(tx core.App) error { return audit.Append(tx, entry, now) })
	return s.done, errors.Join(failure, noted)
}

// days are those to write of a table, in order: those that have ended since the first, and those in which rows were made that changed.
func (e *Engine) days(app core.App, t *collections.WarehouseTable, since, first, now time.Time) ([]time.Time, error) {
	hours, err := t.Hours(app, since)
	if err != nil {
		return nil, err
	}
	zone, today := e.options.Zone, collections.StartOfDay(now.In(e.options.Zone))
	var days []time.Time
	for _, hour := range hours { // an hour of UTC may belong to two days
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
		return s, fmt.Errorf("read how far the export came: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return s, fmt.Errorf("read how far the export came: %w", err)
	}
	if json.Unmarshal(text, &s) != nil {
		return state{}, nil // not ours: everything is written anew
	}
	return s, nil
}

func (e *Engine) writeState(ctx context.Context, at *backup.BlobStore, s state) error {
	err := at.Write(ctx, e.stateName(), func(w io.Writer) error { return json.NewEncoder(w).Encode(s) })
	if err != nil {
		return fmt.Errorf("note how far the export came: %w", err)
	}
	return nil
}
