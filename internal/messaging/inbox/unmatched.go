package inbox

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Senders returns the ids of the patients with a phone number who are not deleted; the list is
// never nil.
func Senders(app core.App, phone phi.Text) ([]string, error) {
	found, err := patients.FindByPhone(app, phone)
	ids := []string{}
	for _, p := range found {
		if !p.Deleted() {
			ids = append(ids, p.Id)
		}
	}
	return ids, err
}

// Close records that a person dealt with a text and with the earlier open ones of its patient;
// patientID is "" for a text without a patient. Repeating it changes nothing.
func Close(app core.App, patientID, id string, by audit.Actor, now time.Time) (m *collections.Message, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if m, err = collections.MessageByID(tx, id); err != nil {
			return fault.OrMissing(err)
		}
		if m.PatientID() != patientID || m.Direction() != collections.MessageIn {
			return fault.Missing()
		}
		closed, err := collections.MarkTextsRead(tx, m, by.Email, now)
		if err != nil || closed == 0 {
			return err
		}
		if err := audit.Append(tx, audit.Entry{
			Event: audit.MessageClose, Actor: by, ResourceType: audit.ResourceMessage, ResourceID: id, PatientID: patientID,
		}, now); err != nil {
			return err
		}
		m, err = collections.MessageByID(tx, id)
		return err
	})
	return m, err
}
