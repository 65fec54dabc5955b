package routes

import (
	"maps"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
)

// storedInstant shows a stored time as the contract does; null when there is none.
func storedInstant(record *core.Record, field string) *string {
	at := collections.ParseInstant(record.GetString(field))
	if at.IsZero() {
		return nil
	}
	text := input.FormatInstant(at)
	return &text
}

// storedNumber shows the record id of a numbered collection as the contract does; null when there is none.
func storedNumber(record *core.Record, field string) *int64 {
	number := collections.Number(record.GetString(field))
	if number == 0 {
		return nil
	}
	return &number
}

// namesOf opens the names of the patients that a page of records is about.
func namesOf(c *call, page []*core.Record) (map[string]patients.Name, error) {
	ids := map[string]bool{}
	for _, record := range page {
		ids[collections.PatientOf(record)] = true
	}
	return patients.Names(c.App, sortedKeys(ids))
}

// recordListed notes in the audit trail whose data a page showed; an empty one shows nobody's.
func (c *call) recordListed(resourceType string, names map[string]patients.Name) error {
	if len(names) == 0 {
		return nil
	}
	return c.recordRead(audit.PatientRead, resourceType, "", slices.Sorted(maps.Keys(names))...)
}

// listOfPatients answers a page of records that belong to patients, by name, and notes whose data it showed. Records that cannot be read are
// left out.
func listOfPatients[V any](
	c *call, p paging, total int, page []*core.Record, resourceType string, view func(*core.Record, map[string]patients.Name) V,
) error {
	page, unreadable := collections.ReadableRecords(page)
	names, err := namesOf(c, page)
	if err != nil {
		return err
	}
	if err := c.recordListed(resourceType, names); err != nil {
		return err
	}
	views := make([]V, len(page))
	for i, record := range page {
		views[i] = view(record, names)
	}
	return list(c, p, total, views, unreadable)
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
