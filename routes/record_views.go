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

// instantOf renders a stored time; null for none.
func instantOf(stored string) *string { return instantOrNull(collections.ParseInstant(stored)) }

// instantOrNull renders a time; null for the zero time.
func instantOrNull(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return new(validate.FormatInstant(at))
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// numberOrNull renders the record id of a numbered collection as its public number; null for none.
func numberOrNull(recordID string) *int64 {
	if number := collections.Number(recordID); number != 0 {
		return &number
	}
	return nil
}

// show answers with the view of one record, or returns the error passed to it.
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

// stringsOf converts the values of an enumeration.
func stringsOf[T ~string](words []T) []string {
	return web.Map(words, func(word T) string { return string(word) })
}

// distinct returns the distinct nonempty values of a field.
func distinct[T any](rows []T, field func(T) string) []string {
	values := map[string]bool{}
	for _, row := range rows {
		values[field(row)] = true
	}
	delete(values, "")
	return slices.Sorted(maps.Keys(values))
}

// recordShown records in the audit trail which patients the rows belong to; no rows, no record.
func recordShown[T any](c *web.Call, resourceType, resourceID string, rows []T, patientOf func(T) string) error {
	shown := distinct(rows, patientOf)
	if len(shown) == 0 {
		return nil
	}
	return c.RecordRead(audit.PatientRead, resourceType, resourceID, shown...)
}

// patientRecord is a record that belongs to a patient.
type patientRecord interface {
	ProxyRecord() *core.Record
	PatientID() string
}

// withPatientNames builds a view that needs the patients' names.
func withPatientNames[R patientRecord, V any](view func(R, map[string]patients.Name) V) func(core.App, []R) ([]V, error) {
	return func(app core.App, page []R) ([]V, error) {
		names, err := patients.Names(app, distinct(page, R.PatientID))
		return web.Map(page, func(record R) V { return view(record, names) }), err
	}
}

// eachWithoutLookup builds a view that needs no other records.
func eachWithoutLookup[R, V any](view func(R) V) func(core.App, []R) ([]V, error) {
	return func(_ core.App, page []R) ([]V, error) { return web.Map(page, view), nil }
}

// list answers with a page of records that belong to patients and records the patients shown. Unreadable records are
// left out and counted.
func list[R patientRecord, V any](c *web.Call, p web.Paging, resourceType string, view func(core.App, []R) ([]V, error)) func([]R, int, error) error {
	return listReadable(c, p, view, func(page []R) error { return recordShown(c, resourceType, "", page, R.PatientID) })
}

// listOfPatient is list for the records of one patient; it records the access also if there are none.
func listOfPatient[R patientRecord, V any](
	c *web.Call, p web.Paging, patientID, resourceType string, view func(core.App, []R) ([]V, error),
) func([]R, int, error) error {
	return listReadable(c, p, view, func([]R) error { return c.RecordRead(audit.PatientRead, resourceType, "", patientID) })
}

func listReadable[R patientRecord, V any](
	c *web.Call, p web.Paging, view func(core.App, []R) ([]V, error), recordAccess func([]R) error,
) func([]R, int, error) error {
	return func(page []R, total int, err error) error {
		if err != nil {
			return err
		}
		page, unreadable := collections.ReadableOnly(page)
		views, err := view(c.App, page)
		if err != nil {
			return err
		}
		if err := recordAccess(page); err != nil {
			return err
		}
		return web.RespondPage(c, p, total, views, unreadable)
	}
}
