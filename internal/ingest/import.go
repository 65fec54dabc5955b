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

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// importTxLines is the number of lines in one transaction, small so that a running service is not delayed.
	importTxLines = 50
	// importSortLines is the number of lines that are read and sorted by measurement at a time.
	importSortLines = 20_000
)

// Table is a list of measurements in a sender's format; Next ends with io.EOF.
type Table interface {
	gateway.Parser
	Next() (line int, body []byte, err error)
}

// ImportOptions configure an import.
type ImportOptions struct {
	// DryRun stores nothing.
	DryRun bool
	Clock  func() time.Time
	// OnProgress receives the number of processed lines; OnRejected a line that was not imported and the reason, which quotes no value.
	OnProgress func(done int)
	OnRejected func(line int, reason string)
	// OnLeftOut receives each column that was left out of a stored line: it could not be read, or is none of the line's measurement type.
	OnLeftOut func(column string)
}

// ImportResult counts the lines of a table by result.
type ImportResult struct{ Stored, Duplicates, Rejected int }

// Import stores the measurements of a table under the gateway's rules and keys: a line that is stored already, from any source, changes
// nothing, so an import can be repeated or resumed. Lines without a patient are rejected and not quarantined: the file is still there.
func (e *Pipeline) Import(ctx context.Context, app core.App, table Table, o ImportOptions) (done ImportResult, err error) {
	i := &importRun{ImportOptions: o, pipeline: e, ingest: e.Readings.Ingest, app: app}
	if o.DryRun {
		i.ingest = NewDryRun(e.Readings).Ingest
	}
	for {
		block, more, err := i.parseLines(table)
		if err != nil {
			return i.done, err
		}
		if err := i.storeBlock(ctx, block); err != nil {
			return i.done, err
		}
		if !more {
			return i.done, i.quarantineImplausibleLines()
		}
	}
}

type importRun struct {
	ImportOptions
	ingest func(core.App, Submission, time.Time) (Outcome, error)
	app    core.App
	lines  int
	done   ImportResult
	// batch is the block that is being stored; pipeline reopens its superseded alerts.
	batch       *readingBatch
	pipeline    *Pipeline
	implausible []implausibleLine
}

// implausibleLine is a line that was rejected for implausible values.
type implausibleLine struct {
	importLine
	body      []byte
	rejection fault.Fields
}

// importLine is a line that was parsed.
type importLine struct {
	line  int
	event gateway.Event
}

// parseLines reads and parses the next lines, outside any transaction.
func (i *importRun) parseLines(table Table) (group []importLine, more bool, err error) {
	for len(group) < importSortLines {
		line, body, err := table.Next()
		if errors.Is(err, io.EOF) {
			return group, false, nil
		}
		i.lines++
		var event gateway.Event
		if err == nil {
			event, err = table.Parse(body, i.Clock())
			event.ReceivedAt = time.Time{} // a table has no clock; its times are trusted
		}
		refused, isFault := errors.AsType[*fault.Error](err)
		switch {
		case isFault:
			if event.Implausible != nil && len(event.Implausible.RejectedFor) == 0 && !event.Implausible.IsDatedByReceipt { // a wrong time or word is an error of the table
				i.implausible = append(i.implausible, implausibleLine{importLine{line, event}, body, refused.Fields})
			}
			i.reject(line, rejectionText(refused))
		case err != nil:
			return nil, false, fmt.Errorf("read line %d: %w", line, err)
		default:
			group = append(group, importLine{line, event})
		}
	}
	return group, true, nil
}

// quarantineImplausibleLines quarantines the lines that were rejected as implausible, after all others are stored, so that newer readings
// supersede them.
func (i *importRun) quarantineImplausibleLines() error {
	if i.DryRun {
		return nil
	}
	for _, line := range i.implausible {
		if err := i.pipeline.quarantineImportLine(i.app, line.event, line.body, line.rejection, i.Clock()); err != nil {
			return fmt.Errorf("store line %d: %w", line.line, err)
		}
	}
	return nil
}

func (i *importRun) reject(line int, reason string) {
	i.done.Rejected++
	i.OnRejected(line, reason)
}

// storeBlock stores a block in order of measurement.
func (i *importRun) storeBlock(ctx context.Context, block []importLine) error {
	events := make([]gateway.Event, len(block))
	for n, line := range block {
		events[n] = line.event
	}
	i.batch = i.pipeline.newBatch(events, i.Clock())
	sorted := make([]importLine, len(block))
	for n, index := range i.batch.order {
		sorted[n] = block[index]
	}
	err := i.storeGroups(ctx, sorted)
	if i.DryRun {
		return err
	}
	return i.batch.finish(i.app, err, i.Clock())
}

func (i *importRun) storeGroups(ctx context.Context, sorted []importLine) error {
	remaining := len(sorted)
	i.OnProgress(i.lines - remaining)
	for group := range slices.Chunk(sorted, importTxLines) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("import was interrupted: %w", err)
		}
		if err := i.storeGroup(group); err != nil {
			return err
		}
		remaining -= len(group)
		i.OnProgress(i.lines - remaining)
	}
	return nil
}

func (i *importRun) storeGroup(group []importLine) error {
	storeLines := func(app core.App) error {
		for _, line := range group {
			if err := i.storeLine(app, line); err != nil {
				return err
			}
		}
		return nil
	}
	if i.DryRun {
		return storeLines(i.app)
	}
	return i.app.RunInTransaction(storeLines)
}

// storeLine stores a line, or checks it in a dry run, and counts the result.
func (i *importRun) storeLine(app core.App, line importLine) error {
	v, err := classify(app, line.event, func(patientID string) (Outcome, error) {
		now := i.Clock()
		s := gatewaySubmission(line.event, patientID, audit.System(), now)
		s.Device = devices.GatewayReport{Model: line.event.DeviceModel} // an import does not show that the device is alive
		s.Origin, s.NewerInBatch = vitals.OriginImport, i.batch.newerThan(line.event)
		return i.ingest(app, s, now)
	})
	i.batch.recordResult(line.event, v.status, v.patient)
	switch {
	case err != nil:
		return fmt.Errorf("store line %d: %w", line.line, err)
	case v.status == Stored:
		i.done.Stored++
		for _, column := range line.event.LeftOut {
			i.OnLeftOut(column)
		}
	case v.status == Duplicate:
		i.done.Duplicates++
	default:
		i.reject(line.line, v.reason)
	}
	return nil
}

// rejectionText returns why a line cannot be read, field by field.
func rejectionText(refused *fault.Error) string {
	if len(refused.Fields) == 0 {
		return refused.Detail
	}
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(refused.Fields)) {
		parts = append(parts, field+": "+strings.Join(refused.Fields[field], " "))
	}
	return strings.Join(parts, "; ")
}

// DryRun returns the outcome of storing readings one after the other, and stores nothing.
type DryRun struct {
	readings *ReadingStore
	seen     map[string]string // values by gateway key
}

// NewDryRun starts from what is stored.
func NewDryRun(e *ReadingStore) *DryRun { return &DryRun{readings: e, seen: map[string]string{}} }

// Ingest returns the outcome of [ReadingStore.Ingest], and treats the reading as stored from then on.
func (r *DryRun) Ingest(app core.App, s Submission, now time.Time) (Outcome, error) {
	if _, err := r.readings.findPatient(app, nil, s); err != nil {
		return Outcome{}, err
	}
	o := r.readings.newObservation(s, now)
	values := readingKey("", s.Reading)
	if earlier, met := r.seen[s.GatewayKey]; met {
		return Outcome{Observation: o, Duplicate: earlier == values, Conflict: earlier != values}, nil
	}
	outcome, keyless, err := findDuplicate(app, o)
	missing := collections.IsNotFound(err)
	if missing || keyless {
		r.seen[s.GatewayKey] = values
	}
	if missing {
		return Outcome{Observation: o}, nil
	}
	return outcome, err
}
