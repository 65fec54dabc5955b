package routes

import (
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/routes/web"
)

// instantOf shows a stored time as the contract does; null when there is none.
func instantOf(stored string) *string { return instantOrNull(collections.ParseInstant(stored)) }

// instantOrNull is a time as the contract shows it; null when there is none.
func instantOrNull(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return new(input.FormatInstant(at))
}

// numberOrNull shows the record id of a numbered collection as the contract does; null when there is none.
func numberOrNull(recordID string) *int64 {
	if number := collections.Number(recordID); number != 0 {
		return &number
	}
	return nil
}

// first is the view of who asked for one.
func first[V any](views []V) V { return views[0] }

// missing is the fault not found for a record that there is not; other errors stay.
func missing(err error) error {
	if collections.Missing(err) {
		return fault.Missing()
	}
	return err
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

// recordShown notes in the audit trail whose data rows showed; none leave no trace.
func recordShown[T any](c *web.Call, resourceType string, rows []T, patientOf func(T) string) error {
	shown := distinct(rows, patientOf)
	if len(shown) == 0 {
		return nil
	}
	return c.RecordRead(audit.PatientRead, resourceType, "", shown...)
}

// namesOf opens the names of the patients that a page of records is about.
func namesOf(c *web.Call, page []*core.Record) (map[string]patients.Name, error) {
	return patients.Names(c.App, distinct(page, collections.PatientOf))
}

// recordListed notes in the audit trail whose data a page showed; an empty one shows nobody's.
func recordListed(c *web.Call, resourceType string, names map[string]patients.Name) error {
	if len(names) == 0 {
		return nil
	}
	return c.RecordRead(audit.PatientRead, resourceType, "", slices.Sorted(maps.Keys(names))...)
}

// listOfPatients answers a page of records that belong to patients, by name, and notes whose data it showed. Records that cannot be read are
// left out.
func listOfPatients[V any](
	c *web.Call, p web.Paging, total int, page []*core.Record, resourceType string, view func(*core.Record, map[string]patients.Name) V,
) error {
	page, unreadable := collections.ReadableRecords(page)
	names, err := namesOf(c, page)
	if err != nil {
		return err
	}
	if err := recordListed(c, resourceType, names); err != nil {
		return err
	}
	return web.List(c, p, total, web.Views(page, func(record *core.Record) V { return view(record, names) }), unreadable)
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
