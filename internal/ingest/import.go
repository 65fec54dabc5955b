package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"

	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// importedTogether is how many lines are stored in one transaction, so that a running service never waits long.
	importedTogether = 50
	// importedInOrder is how many lines are read and put in order of measurement at a time.
	importedInOrder = 20_000
)

// Table is a list of measurements in some sender's words; Next ends with io.EOF.
type Table interface {
	gateway.Parser
	Next() (line int, body []byte, err error)
}

// ImportOptions are what an import needs.
type ImportOptions struct {
	// DryRun looks and stores nothing.
	DryRun bool
	Clock  func() time.Time
	// Progress is told how many lines are done, Refused which line was not taken and why; the reason quotes no value.
	Progress func(done int)
	Refused  func(line int, reason string)
}

// Imported says what became of the lines of a table.
type Imported struct{ Stored, Known, Refused int }

// Import stores the measurements of a table under the rules and keys of the gateway: a line that was stored before, by
// whichever way it came, is known and changes nothing, so an import can be repeated and can go on after an interruption.
// What cannot be placed is refused, not kept: the file is still there.
func (e *Pipeline) Import(ctx context.Context, app core.App, table Table, o ImportOptions) (done Imported, err error) {
	i := &importing{ImportOptions: o, engine: e, ingest: e.Readings.Ingest, app: app}
	if o.DryRun {
		i.ingest = NewRehearsal(e.Readings).Ingest
	}
	for {
		block, more, err := i.read(table)
		if err != nil {
			return i.done, err
		}
		if err := i.storeAll(ctx, block); err != nil {
			return i.done, err
		}
		if !more {
			return i.done, i.tell()
		}
	}
}

type importing struct {
	ImportOptions
	ingest func(core.App, Submission, time.Time) (Outcome, error)
	app    core.App
	lines  int
	done   Imported
	// all is the block that is being stored; engine looks again at what it was wrong about.
	all         *together
	engine      *Pipeline
	implausible []implausibleLine
}

// implausibleLine is a line that was refused for values that no device should report.
type implausibleLine struct {
	entry
	body    []byte
	refusal fault.Fields
}

// entry is a line that could be read.
type entry struct {
	line  int
	event gateway.Event
}

// read takes the next lines and parses them, before any transaction.
func (i *importing) read(table Table) (group []entry, more bool, err error) {
	for len(group) < importedInOrder {
		line, body, err := table.Next()
		if errors.Is(err, io.EOF) {
			return group, false, nil
		}
		i.lines++
		var event gateway.Event
		if err == nil {
			event, err = table.Parse(body, i.Clock())
			event.ReceivedAt = time.Time{} // a table has no clock of its own: its times are taken at their word
		}
		refused, isFault := errors.AsType[*fault.Error](err)
		switch {
		case isFault:
			if event.Implausible != nil && event.Implausible.Ahead.IsZero() { // a line of the future is a mistake of the table
				i.implausible = append(i.implausible, implausibleLine{entry{line, event}, body, refused.Fields})
			}
			i.refuse(line, reasonText(refused))
		case err != nil:
			return nil, false, fmt.Errorf("read line %d: %w", line, err)
		default:
			group = append(group, entry{line, event})
		}
	}
	return group, true, nil
}

// tell has people told of what is implausible in the lines that were refused, once all others are stored: what was measured since speaks for
// itself.
func (i *importing) tell() error {
	if i.DryRun {
		return nil
	}
	for _, line := range i.implausible {
		if err := i.engine.quarantineLine(i.app, line.event, line.body, line.refusal, i.Clock()); err != nil {
			return fmt.Errorf("store line %d: %w", line.line, err)
		}
	}
	return nil
}

func (i *importing) refuse(line int, reason string) {
	i.done.Refused++
	i.Refused(line, reason)
}

// storeAll stores a block in order of measurement.
func (i *importing) storeAll(ctx context.Context, block []entry) error {
	i.all = &together{engine: i.engine, newest: newest{}, at: i.Clock()}
	sorted := make([]entry, len(block))
	for n, place := range deliveryOrder(block, entry.measured) {
		if sorted[n] = block[place]; measuredReading(sorted[n].measured()) {
			i.all.newest.add(sorted[n].event)
		}
	}
	err := i.storeGroups(ctx, sorted)
	if i.DryRun {
		return err
	}
	i.all.missing = i.all.missing || err != nil
	return errors.Join(err, i.all.reconsider(i.app, i.Clock()))
}

func (i *importing) storeGroups(ctx context.Context, sorted []entry) error {
	left := len(sorted)
	i.Progress(i.lines - left)
	for group := range slices.Chunk(sorted, importedTogether) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("import was interrupted: %w", err)
		}
		if err := i.store(group); err != nil {
			return err
		}
		left -= len(group)
		i.Progress(i.lines - left)
	}
	return nil
}

func (e entry) measured() (gateway.Event, bool) { return e.event, true }

func (i *importing) store(group []entry) error {
	all := func(app core.App) error {
		for _, line := range group {
			if err := i.take(app, line); err != nil {
				return err
			}
		}
		return nil
	}
	if i.DryRun {
		return all(i.app)
	}
	return i.app.RunInTransaction(all)
}

// take has a line stored, or looked at, and counts how that ended.
func (i *importing) take(app core.App, line entry) error {
	v, err := take(app, line.event, func(patientID string) (Outcome, error) {
		now := i.Clock()
		s := submission(line.event, patientID, audit.System(), now)
		s.Device = devices.Envelope{Model: line.event.DeviceModel} // a table is no sign of life
		s.Origin, s.Following = vitals.OriginImport, i.all.following(line.event)
		return i.ingest(app, s, now)
	})
	i.all.note(line.event, v.status, v.patient)
	switch {
	case err != nil:
		return fmt.Errorf("store line %d: %w", line.line, err)
	case v.status == Stored:
		i.done.Stored++
	case v.status == Known:
		i.done.Known++
	default:
		i.refuse(line.line, v.reason)
	}
	return nil
}

// reasonText is why a line cannot be read, field by field.
func reasonText(refused *fault.Error) string {
	if len(refused.Fields) == 0 {
		return refused.Detail
	}
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(refused.Fields)) {
		parts = append(parts, field+": "+strings.Join(refused.Fields[field], " "))
	}
	return strings.Join(parts, "; ")
}
