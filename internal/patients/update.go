package patients

import (
	"errors"
	"maps"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// errSame says that a change leaves everything as it is.
var errSame = errors.New("nothing differs")

// update is [alterIf] for new values of a patient, where the conditions hold. Values that are the stored ones are not stored again: a version, a
// time, an entry in the trail and a change that others are told would all speak of something that did not happen.
// Source: docs/decisions/patients.md, "PATCH semantics".
func update(app core.App, id string, by audit.Actor, now time.Time, conditions []Condition,
	change func(p *collections.Patient) error,
) (*collections.Patient, error) {
	p, err := alterIf(app, id, audit.PatientUpdate, by, now, conditions, func(p *collections.Patient) error {
		if err := collections.Readable(p.ProxyRecord()); err != nil {
			return err // what cannot be read differs from nothing
		}
		before := held(p)
		if err := change(p); err != nil {
			return err
		}
		if maps.Equal(before, held(p)) {
			return errSame
		}
		return nil
	})
	if errors.Is(err, errSame) {
		return p, nil
	}
	return p, err
}

// held is what a patient's record holds of what callers write, by column.
func held(p *collections.Patient) map[string]string {
	values := map[string]string{}
	for _, column := range bodyColumns {
		values[column] = p.GetString(column)
	}
	return values
}
