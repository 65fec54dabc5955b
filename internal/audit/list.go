package audit

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Filter selects entries; zero fields match all. From and To are inclusive.
type Filter = collections.AuditFilter

// StoredEntry is a recorded entry with its sealed fields opened.
type StoredEntry struct {
	collections.AuditRow
	Reason  string
	Changes map[string]Change
}

func openEntry(row collections.AuditRow) StoredEntry {
	s := StoredEntry{AuditRow: row}
	var err error
	if s.Reason, err = collections.Open(row.Reason, "audit_log.reason", row.ID); err != nil {
		s.Reason = collections.UnreadableText // not counted as an error: the key of an old entry may have been deleted
	}
	text, err := collections.Open(row.Changes, "audit_log.changes", row.ID)
	switch {
	case err != nil:
		s.Changes = map[string]Change{collections.UnreadableText: {}}
	case text != "":
		_ = json.Unmarshal([]byte(text), &s.Changes)
	}
	return s
}

// Fields returns the names of the changed fields, sorted.
func (s StoredEntry) Fields() []string {
	names := slices.AppendSeq([]string{}, maps.Keys(s.Changes))
	slices.Sort(names)
	return names
}

// List returns a page of entries, newest first, and the total number of matches.
func List(app core.App, f Filter, offset, limit int) (page []StoredEntry, total int, err error) {
	if (f == Filter{}) {
		total, err = collections.CountAllAudit(app)
	} else {
		total, err = collections.CountAudit(app, f.Where())
	}
	if err != nil {
		return nil, 0, err
	}
	rows, err := collections.SelectAudit(app, f.Where(), offset, limit)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range rows {
		page = append(page, openEntry(row))
	}
	return page, total, nil
}

// Each calls visit for every matching entry, oldest first, in bounded memory.
func Each(app core.App, f Filter, visit func(StoredEntry) error) error {
	return eachRow(app, f.Where(), func(row collections.AuditRow) error { return visit(openEntry(row)) })
}

func eachRow(app core.App, where dbx.Expression, visit func(collections.AuditRow) error) error {
	for afterID := ""; ; {
		rows, err := collections.SelectAuditAfter(app, where, afterID, pageSize)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := visit(row); err != nil {
				return err
			}
			afterID = row.ID
		}
		if len(rows) < pageSize {
			return nil
		}
	}
}

// Find returns one entry by number, or sql.ErrNoRows.
func Find(app core.App, number int64) (StoredEntry, error) {
	rows, err := collections.AuditRows(app, collections.NumberID(number-1), collections.NumberID(number), 1)
	if err != nil {
		return StoredEntry{}, err
	}
	if len(rows) == 0 {
		return StoredEntry{}, fmt.Errorf("audit entry %d: %w", number, sql.ErrNoRows)
	}
	return openEntry(rows[0]), nil
}

// patientIDsField is the field with the ids of all patients that a list showed.
const patientIDsField = "patient_ids"

// PatientAccess returns the entries about a patient, newest first, and those of lists that showed the patient. The ids in a list are sealed, so these
// entries are opened one by one.
func PatientAccess(app core.App, patientID string, from, to time.Time) ([]StoredEntry, error) {
	events := []string{
		string(PatientRead), string(PatientSearch), string(PatientImport), string(ObservationRead), string(ReportExport), string(BillingExport),
	}
	var found []StoredEntry
	err := eachRow(app, collections.AuditOfPatient(patientID, events, from, to), func(row collections.AuditRow) error {
		if entry := openEntry(row); row.Patient == patientID || entry.listsPatient(patientID) {
			found = append(found, entry)
		}
		return nil
	})
	slices.Reverse(found)
	return found, err
}

func (s StoredEntry) listsPatient(patientID string) bool {
	shown, _ := s.Changes[patientIDsField].New.([]any)
	return slices.Contains(shown, any(patientID))
}
