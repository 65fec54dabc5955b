package routes

import (
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// instantOf shows a stored time as the contract does; null when there is none.
func instantOf(stored string) *string { return instantOrNull(collections.ParseInstant(stored)) }

// instantOrNull is a time as the contract shows it; null when there is none.
func instantOrNull(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return new(validate.FormatInstant(at))
}

// orNull is null for the empty text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// numberOrNull shows the record id of a numbered collection as the contract does; null when there is none.
func numberOrNull(recordID string) *int64 {
	if number := collections.Number(recordID); number != 0 {
		return &number
	}
	return nil
}

// show answers with the view of one record, or returns the error that came in its place.
func show[R, V any](c *web.Call, answer func(any) error, view func(core.App, []R) ([]V, error)) func(R, error) error {
	return func(record R, err error) error {
		if err != nil {
			return err
		}
		views, err := view(c.App, []R{record})
		if err != nil {
			return err
		}
		return answer(views[0])
	}
}

// texts are the words of an enumeration.
func texts[T ~string](words []T) []string {
	return web.Views(words, func(word T) string { return string(word) })
}

// distinct are the values of a field in rows, each once; without the empty one.
func distinct[T any](rows []T, field func(T) string) []string {
	values := map[string]bool{}
	for _, row := range rows {
		values[field(row)] = true
	}
	delete(values, "")
	return slices.Sorted(maps.Keys(values))
}

// recordShown notes in the audit trail whose data rows showed, of all or of one resource; none leave no trace.
func recordShown[T any](c *web.Call, resourceType, resourceID string, rows []T, patientOf func(T) string) error {
	shown := distinct(rows, patientOf)
	if len(shown) == 0 {
		return nil
	}
	return c.RecordRead(audit.PatientRead, resourceType, resourceID, shown...)
}

// ofPatients are records that belong to patients.
type ofPatients interface {
	ProxyRecord() *core.Record
	PatientID() string
}

// named is a view of records by the names of their patients.
func named[R ofPatients, V any](view func(R, map[string]patients.Name) V) func(core.App, []R) ([]V, error) {
	return func(app core.App, page []R) ([]V, error) {
		names, err := patients.Names(app, distinct(page, R.PatientID))
		return web.Views(page, func(record R) V { return view(record, names) }), err
	}
}

// alone is a view of records that nothing is read beside.
func alone[R, V any](view func(R) V) func(core.App, []R) ([]V, error) {
	return func(_ core.App, page []R) ([]V, error) { return web.Views(page, view), nil }
}

// list answers a page of records that belong to patients, and notes whose data it showed. Records that cannot be read are left out.
func list[R ofPatients, V any](c *web.Call, p web.Paging, resourceType string, view func(core.App, []R) ([]V, error)) func([]R, int, error) error {
	return func(page []R, total int, err error) error {
		if err != nil {
			return err
		}
		page, unreadable := collections.ReadableOnly(page)
		views, err := view(c.App, page)
		if err != nil {
			return err
		}
		if err := recordShown(c, resourceType, "", page, R.PatientID); err != nil {
			return err
		}
		return web.List(c, p, total, views, unreadable)
	}
}
