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

// Senders returns the ids of the patients who are not deleted and have a phone number, never nil.
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

// Close records that a person dealt with a text of no certain patient. A second time changes nothing.
func Close(app core.App, id string, by audit.Actor, now time.Time) (m *collections.Message, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if m, err = collections.FindMessage(tx, "", id); err != nil {
			return fault.OrMissing(err)
		}
		if !m.ReadAt().IsZero() {
			return nil
		}
		if err := collections.MarkMessageRead(tx, id, by.Email, now); err != nil {
			return err
		}
		if err := audit.Append(tx, audit.Entry{Event: audit.MessageClose, Actor: by, ResourceType: audit.ResourceMessage, ResourceID: id}, now); err != nil {
			return err
		}
		m, err = collections.FindMessage(tx, "", id)
		return err
	})
	return m, err
}
