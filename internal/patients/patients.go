// Package patients manages patient records: validation, creation and replacement, archiving and deletion, which role sees which fields,
// enrollment, import from the EMR, and search by parts of encrypted names.
//
// [Body.Read] defines a valid record for the API, the EMR import and [Guard], which checks every record before any writer stores it.
// Readings, alerts and scores are outside of this package. The rules are in docs/decisions/patients.md.
package patients

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// errUnchanged ends a transaction that would change nothing.
var errUnchanged = errors.New("nothing differs")

// update is [modifyIf] for new values of a patient. If no value differs, nothing is stored: version, time, audit entry and change feed
// would record a change that did not happen. Source: docs/decisions/patients.md, "PATCH semantics".
func update(app core.App, id string, by audit.Actor, now time.Time, conditions []Precondition,
	change func(p *collections.Patient) error,
) (*collections.Patient, error) {
	p, err := modifyIf(app, id, audit.PatientUpdate, by, now, conditions, func(p *collections.Patient) error {
		if err := collections.Readable(p.ProxyRecord()); err != nil {
			return err // an unreadable record cannot be compared
		}
		before := bodyValues(p)
		if err := change(p); err != nil {
			return err
		}
		if maps.Equal(before, bodyValues(p)) {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return p, nil
	}
	return p, err
}

// bodyValues returns the values that callers write, by column.
func bodyValues(p *collections.Patient) map[string]string {
	values := map[string]string{}
	for _, column := range bodyColumns {
		values[column] = p.GetString(column)
	}
	return values
}

// Create stores a new patient, with a triage row and an audit entry, in one transaction. The hooks on patients complete it ([Guard]). A
// value that another patient has, or an unknown reference, is a validation fault. Source: docs/decisions/patients.md, "MRN".
func Create(app core.App, draft Draft, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return create(app, draft, audit.PatientCreate, by, now)
}

func create(app core.App, draft Draft, event audit.Event, by audit.Actor, now time.Time) (p *collections.Patient, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if p, err = collections.NewPatient(tx); err != nil {
			return err
		}
		draft.applyTo(p)
		p.Set(collections.ColumnCreatedAt, collections.FormatInstant(now))
		if err := tx.Save(p); err != nil {
			return asFault(err)
		}
		return auditPatient(tx, event, p, audit.Changes{}, by, now)
	})
	if err != nil {
		return nil, fmt.Errorf("create patient: %w", err)
	}
	return p, nil
}

// Replace stores new values of a patient who is not deleted and audits the old ones, in one transaction. The draft comes from
// [Body.ReadReplacement]. The state stays. Source: docs/decisions/patients.md, "PUT semantics".
func Replace(app core.App, id string, draft Draft, by audit.Actor, now time.Time, conditions ...Precondition) (*collections.Patient, error) {
	p, err := update(app, id, by, now, conditions, func(p *collections.Patient) error {
		draft.applyTo(p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replace patient: %w", err)
	}
	return p, nil
}

// modify changes a stored patient and audits the change, in one transaction. The patient must not be deleted, unless event is a restore.
func modify(app core.App, id string, event audit.Event, by audit.Actor, now time.Time,
	change func(p *collections.Patient) error,
) (*collections.Patient, error) {
	return modifyIf(app, id, event, by, now, nil, change)
}

// modifyIf is modify with preconditions, which are checked in the transaction.
func modifyIf(app core.App, id string, event audit.Event, by audit.Actor, now time.Time, conditions []Precondition,
	change func(p *collections.Patient) error,
) (p *collections.Patient, err error) {
	find := collections.FindPatient
	if event == audit.PatientRestore {
		find = collections.FindPatientAnyState
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if p, err = find(tx, id); err != nil {
			return fault.OrMissing(err)
		}
		for _, holds := range conditions {
			if err := holds(tx, p); err != nil {
				return err
			}
		}
		old := auditValues(p)
		if err := change(p); err != nil {
			return err
		}
		p.Set(collections.ColumnUpdatedAt, collections.FormatInstant(now))
		p.SetRaw(stateSetKey, by)
		if err := tx.Save(p); err != nil {
			return asFault(err)
		}
		return auditPatient(tx, event, p, old, by, now)
	})
	return p, err
}

// auditPatient appends the audit entry of a stored patient, with the changed values.
func auditPatient(tx core.App, event audit.Event, p *collections.Patient, old audit.Changes, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for name, value := range auditValues(p) {
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

// auditValues returns a patient's values under the contract's names. Of an SSN only the last four digits are recorded.
func auditValues(p *collections.Patient) audit.Changes {
	held := audit.Changes{"status": {New: phi.Text(stateOf(p))}}
	for _, column := range apiColumns {
		held[column] = audit.Change{New: phi.Text(p.GetString(column))}
	}
	for _, column := range bodyColumns {
		text := p.GetString(column)
		if column == collections.PatientSSN && text != "" {
			text = "***-**-" + lastFour(text)
		}
		held[contractName(column)] = audit.Change{New: phi.Text(text)}
	}
	return held
}

func lastFour(ssn string) string { return ssn[max(0, len(ssn)-4):] }
