package intake

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

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/observations"
)

// importedTogether is how many lines are stored in one transaction, so that a running service never waits long.
const importedTogether = 50

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
func (e *Engine) Import(ctx context.Context, app core.App, table Table, o ImportOptions) (done Imported, err error) {
	i := &importing{ImportOptions: o, ingest: e.Readings.Ingest, app: app}
	if o.DryRun {
		i.ingest = observations.NewRehearsal(e.Readings).Ingest
	}
	for {
		group, more, err := i.read(table)
		if err != nil {
			return i.done, err
		}
		if err := ctx.Err(); err != nil {
			return i.done, fmt.Errorf("import was interrupted: %w", err)
		}
		if err := i.store(group); err != nil {
			return i.done, err
		}
		i.Progress(i.lines)
		if !more {
			return i.done, nil
		}
	}
}

type importing struct {
	ImportOptions
	ingest func(core.App, observations.Submission, time.Time) (observations.Outcome, error)
	app    core.App
	lines  int
	done   Imported
}

// entry is a line that could be read.
type entry struct {
	line  int
	event gateway.Event
}

// read takes the next lines and parses them, before any transaction.
func (i *importing) read(table Table) (group []entry, more bool, err error) {
	for len(group) < importedTogether {
		line, body, err := table.Next()
		if errors.Is(err, io.EOF) {
			return group, false, nil
		}
		i.lines++
		var event gateway.Event
		if err == nil {
			event, err = table.Parse(body, i.Clock())
		}
		refused, isFault := errors.AsType[*fault.Error](err)
		switch {
		case isFault:
			i.refuse(line, reasonText(refused))
		case err != nil:
			return nil, false, fmt.Errorf("read line %d: %w", line, err)
		default:
			group = append(group, entry{line, event})
		}
	}
	return group, true, nil
}

func (i *importing) refuse(line int, reason string) {
	i.done.Refused++
	i.Refused(line, reason)
}

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
	v, err := take(app, line.event, func(patientID string) (observations.Outcome, error) {
		now := i.Clock()
		s := submission(line.event, patientID, audit.System(), now)
		s.Device = devices.Envelope{Model: line.event.DeviceModel} // a table is no sign of life
		return i.ingest(app, s, now)
	})
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

// What a device measures at one time may come in parts, in any order and at the same moment. The part that makes a reading is stored
// at once, with the additions that wait for it; an addition completes a reading that is stored, and else waits. Whoever comes second
// looks once more after what it wrote is committed, so that of two at the same moment one sees the other.
// Source: docs/decisions/gateway.md, "Other device vendors".

// eachWaiting calls do for each addition to the event's reading that waits.
func (e *Engine) eachWaiting(app core.App, event gateway.Event, do func(waiting *collections.GatewayEvent, addition gateway.Event) error) error {
	for _, name := range event.Lacks {
		waiting, err := collections.FindGatewayEvent(app, event.IDOf(name))
		if collections.Missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		addition, err := e.reread(waiting)
		if waits(waiting) != nil || err != nil || addition.Reading == nil {
			continue // it is where people see it
		}
		if err := do(waiting, addition); err != nil {
			return err
		}
	}
	return nil
}

// joined is the event with the additions to its reading that came before it.
func (e *Engine) joined(app core.App, event gateway.Event) (gateway.Event, error) {
	err := e.eachWaiting(app, event, func(_ *collections.GatewayEvent, addition gateway.Event) error {
		if whole, fits := event.Reading.Add(*addition.Reading); fits {
			event.Reading = &whole
		}
		return nil
	})
	return event, err
}

// addWaiting adds what waits to the event's reading, which is stored for the patient.
func (e *Engine) addWaiting(tx core.App, event gateway.Event, patientID string, by audit.Actor, now time.Time) error {
	return e.eachWaiting(tx, event, func(waiting *collections.GatewayEvent, addition gateway.Event) error {
		outcome, err := e.Readings.Ingest(tx, submission(addition, patientID, by, now), now)
		if err != nil {
			return err
		}
		if outcome.Conflict {
			return goOnWaiting(tx, waiting, collections.EventOpen, ReasonConflict, nil)
		}
		return end(tx, waiting, ending{status: collections.EventReleased, observation: outcome.Observation.ID, patient: patientID}, by, now)
	})
}

// retry tries an event again that was held a moment ago.
func (e *Engine) retry(app core.App, held Result, now time.Time) (Result, error) {
	var done Replayed
	err := app.RunInTransaction(func(tx core.App) error { return e.replayOne(tx, held.EventID, &done, now) })
	if err != nil || done.Waiting > 0 {
		return held, err
	}
	ended, err := Find(app, held.EventID)
	if err != nil {
		return held, err
	}
	return Result{Status: Stored, EventID: held.EventID, ObservationID: ended.ObservationID()}, nil
}
