package hooks

import (
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// setUUID sets a time-ordered id, unless the writer chose a valid UUID.
func (h *hooks) setUUID(e *core.RecordEvent) error {
	if id, ok := validate.ParseUUID(e.Record.Id); ok {
		e.Record.Id = id
	} else {
		e.Record.Id = collections.NewUUID()
	}
	return e.Next()
}

// validateRow validates as PocketBase does, but without the case-insensitive lookup of a new record's id, which would scan these tables: only
// lower case is valid, and the primary key rejects duplicates.
func (h *hooks) validateRow(e *core.RecordEvent) error {
	if !e.Record.IsNew() {
		return e.Next()
	}
	refused := validation.Errors{}
	for _, field := range e.Record.Collection().Fields {
		id, isText := field.(*core.TextField)
		validate := func() error { return field.ValidateValue(e.Context, e.App, e.Record) }
		if isText && id.PrimaryKey {
			validate = func() error { return id.ValidatePlainValue(e.Record.Id) }
		}
		if err := validate(); err != nil {
			refused[field.GetName()] = err
		}
	}
	return refused.Filter()
}

// setCreatedAt sets the creation time of a record from the dashboard or a script.
func (h *hooks) setCreatedAt(e *core.RecordEvent) error {
	collections.StampCreated(e.Record, h.Clock())
	return e.Next()
}

// setNumber takes the next number of the collection. It keeps a number that an engine has taken, and replaces one that the sequence has not
// reached: the sequence would later collide with it.
func (h *hooks) setNumber(e *core.RecordEvent) error {
	name := e.Record.Collection().Name
	taken, err := collections.IsIssued(e.App, name, e.Record.Id)
	if err == nil && !taken {
		e.Record.Id, err = collections.NextID(e.App, name)
	}
	return continueUnless(err, e)
}

// reject rejects the write with a message as an API error, the only kind that the dashboard shows.
func reject(sentence string) func(*hooks, *core.RecordEvent) error {
	return func(*hooks, *core.RecordEvent) error { return router.NewBadRequestError(sentence, nil) }
}

// rejectDashboard is refuse for the dashboard only.
func rejectDashboard(sentence string) func(*hooks, *core.RecordEvent) error {
	return func(_ *hooks, e *core.RecordEvent) error {
		if fromDashboard(e.Record) {
			return router.NewBadRequestError(sentence, nil)
		}
		return e.Next()
	}
}

// rejectIf rejects the write with the problem of the record, as the API would: entries take their amounts from rates and fees, and keep them.
func rejectIf(problemOf func(*core.Record) string) func(*hooks, *core.RecordEvent) error {
	return func(_ *hooks, e *core.RecordEvent) error {
		if problem := problemOf(e.Record); problem != "" {
			return router.NewBadRequestError(problem, nil)
		}
		return e.Next()
	}
}

// check calls the guard of an engine before the write, for every writer.
func check(guard func(core.App, *core.Record, time.Time) error) func(*hooks, *core.RecordEvent) error {
	return func(h *hooks, e *core.RecordEvent) error { return continueUnless(guard(e.App, e.Record, h.Clock()), e) }
}

// Handlers after a commit only notify a worker or a cache and never fail: the row is stored, and the worker's sweep finds what a lost wake-up
// missed.

// notify calls an engine with the id of the changed record, unless the engine is nil. Evicted access tokens apply a changed role, a
// deactivation or a deletion, also one in the dashboard, from the next request on.
func notify(engine func(*hooks) func(id string)) func(*hooks, *core.RecordEvent) error {
	return func(h *hooks, e *core.RecordEvent) error {
		if call := engine(h); call != nil {
			call(e.Record.Id)
		}
		return e.Next()
	}
}

// wake wakes a worker.
func wake(worker func(*hooks) func()) func(*hooks, *core.RecordEvent) error {
	return func(h *hooks, e *core.RecordEvent) error {
		worker(h)()
		return e.Next()
	}
}
