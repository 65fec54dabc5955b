package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/input"
)

// giveUUID makes the id time-ordered; a well-formed one that the writer chose stays.
func (h *hooks) giveUUID(e *core.RecordEvent) error {
	if id, ok := input.ParseUUID(e.Record.Id); ok {
		e.Record.Id = id
	} else {
		e.Record.Id = collections.NewUUID()
	}
	return e.Next()
}

// giveTime says when a record was made that the dashboard or a script creates without saying so.
func (h *hooks) giveTime(e *core.RecordEvent) error {
	collections.StampCreated(e.Record, h.Clock())
	return e.Next()
}

// giveNumber takes the next number of the collection; one that an engine took already stays. A number that the sequence
// has not come to does not: once it did, it would fall on this record and go no further.
func (h *hooks) giveNumber(e *core.RecordEvent) error {
	name := e.Record.Collection().Name
	taken, err := collections.Taken(e.App, name, e.Record.Id)
	if err == nil && !taken {
		e.Record.Id, err = collections.NextID(e.App, name)
	}
	if err != nil {
		return err
	}
	return e.Next()
}
