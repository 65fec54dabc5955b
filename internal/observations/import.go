package observations

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
	i := &importing{ImportOptions: o, engine: e, app: app, seen: map[string]string{}}
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
	engine *Engine
	app    core.App
	lines  int
	done   Imported
	seen   map[string]string // in a dry run: values by key
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
		case event.Reading == nil:
			i.refuse(line, ReasonUnsupportedType)
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
	if i.DryRun {
		for _, e := range group {
			if err := i.settle(i.app, e, i.preview); err != nil {
				return err
			}
		}
		return nil
	}
	return i.app.RunInTransaction(func(tx core.App) error {
		for _, e := range group {
			if err := i.settle(tx, e, i.engine.Ingest); err != nil {
				return err
			}
		}
		return nil
	})
}

// settle finds the patient of a line, takes it and counts how that ended.
func (i *importing) settle(app core.App, e entry, take func(core.App, Submission, time.Time) (Outcome, error)) error {
	patientID, reason, err := Place(app, e.event)
	if err != nil {
		return fmt.Errorf("place line %d: %w", e.line, err)
	}
	if reason != "" {
		i.refuse(e.line, reason)
		return nil
	}
	now := i.Clock()
	s := FromEvent(e.event, patientID, audit.System(), now)
	s.Device = devices.Envelope{Model: e.event.DeviceModel} // a table is no sign of life
	outcome, err := take(app, s, now)
	refused, isFault := errors.AsType[*fault.Error](err)
	switch {
	case isFault:
		i.refuse(e.line, ReasonFor(refused))
	case err != nil:
		return fmt.Errorf("store line %d: %w", e.line, err)
	case outcome.Conflict:
		i.refuse(e.line, ReasonConflict)
	case outcome.Duplicate:
		i.done.Known++
	default:
		i.done.Stored++
	}
	return nil
}

// preview says what storing would come to, and remembers it as if it had been done.
func (i *importing) preview(app core.App, s Submission, now time.Time) (Outcome, error) {
	if _, err := i.engine.findHolder(app, nil, s); err != nil {
		return Outcome{}, err
	}
	o := i.engine.observe(s, now)
	values := readingKey("", s.Reading)
	if earlier, met := i.seen[s.GatewayKey]; met {
		return Outcome{Observation: o, Duplicate: earlier == values, Conflict: earlier != values}, nil
	}
	outcome, keyless, err := repeated(app, o)
	missing := collections.Missing(err)
	if missing || keyless {
		i.seen[s.GatewayKey] = values
	}
	if missing {
		return Outcome{Observation: o}, nil
	}
	return outcome, err
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
