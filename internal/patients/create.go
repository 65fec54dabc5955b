package patients

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Create stores a new patient, with a triage row and an audit entry, in one transaction. The hooks on patients do the
// rest of the work ([Guard]). A value that another patient holds, or a reference to nobody, is a
// validation fault. Source: docs/decisions/patients.md, "MRN".
func Create(app core.App, draft Draft, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return create(app, draft, audit.PatientCreate, by, now)
}

func create(app core.App, draft Draft, event audit.Event, by audit.Actor, now time.Time) (*collections.Patient, error) {
	var created *collections.Patient
	err := app.RunInTransaction(func(tx core.App) error {
		p, err := collections.NewPatient(tx)
		if err != nil {
			return err
		}
		draft.applyTo(p)
		p.Set(collections.ColumnCreatedAt, collections.Instant(now))
		if err := tx.Save(p); err != nil {
			return asFault(err)
		}
		created = p
		return note(tx, event, p, audit.Changes{}, by, now)
	})
	if err != nil {
		return nil, fmt.Errorf("create patient: %w", err)
	}
	return created, nil
}

// Replace stores new values of a patient who is not deleted, and what they were in the audit log, in one transaction.
// The draft comes from [Body.ReadReplacement]. Whether the patient is archived stays as it is.
// Source: docs/decisions/patients.md, "PUT semantics".
func Replace(app core.App, id string, draft Draft, by audit.Actor, now time.Time) (*collections.Patient, error) {
	p, err := alter(app, id, audit.PatientUpdate, by, now, func(p *collections.Patient) error {
		draft.applyTo(p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replace patient: %w", err)
	}
	return p, nil
}

// note appends the audit entry of a stored patient, with the values that differ from the old ones.
func note(tx core.App, event audit.Event, p *collections.Patient, old audit.Changes, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for name, value := range values(p) {
		before := old[name].New
		if value.New == before || (before == nil && value.New == phi.Text("")) {
			continue
		}
		changes[name] = audit.Change{Old: before, New: value.New}
	}
	entry := audit.Entry{Event: event, Actor: by, ResourceType: audit.ResourcePatient, ResourceID: p.Id, PatientID: p.Id, Changes: changes}
	if event == audit.PatientArchive {
		entry.Reason = p.ArchiveReason()
	}
	return audit.Append(tx, entry, now)
}

// values are what a patient's record holds, under the names of the contract. Of a social security number only the
// last four digits are noted.
func values(p *collections.Patient) audit.Changes {
	held := audit.Changes{"status": {New: phi.Text(stateOf(p))}}
	for _, column := range bodyColumns {
		text := p.GetString(column)
		if column == collections.PatientSSN && text != "" {
			text = "***-**-" + lastFour(text)
		}
		held[nameOf(column)] = audit.Change{New: phi.Text(text)}
	}
	return held
}

func lastFour(ssn string) string { return ssn[max(0, len(ssn)-4):] }
