package devices

import (
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/phi"
)

// SetUpBody is the body that records that a patient was shown how to use a device; every member may be left out.
type SetUpBody struct {
	EducatedBy  input.Integer `json:"educated_by"`
	CompletedAt input.String  `json:"completed_at"`
	Notes       input.String  `json:"notes"`
}

// SetUp is a body that was found valid by itself.
type SetUp struct {
	EducatedBy  int64     // number of a user; 0 for the caller
	CompletedAt time.Time // zero for now
	Notes       phi.Text
}

// Read checks a body. Source: docs/decisions/billing.md, "99453".
func (b SetUpBody) Read(c *input.Checks, now time.Time) SetUp {
	s := SetUp{CompletedAt: c.Instant("completed_at", b.CompletedAt, false), Notes: phi.Text(c.Text("notes", b.Notes, input.Optional(4000).Multiline()))}
	if by := c.Integer("educated_by", b.EducatedBy, false); by != nil {
		if s.EducatedBy = *by; *by <= 0 {
			c.Reject("educated_by", "Must be the id of a user.")
		}
	}
	if s.CompletedAt.After(now) {
		c.Reject("completed_at", "Must not be in the future.")
	}
	return s
}

// CompleteSetUp records the education of whoever holds the device, the evidence for CPT 99453. Said again, it corrects what
// was said before. Faults: not_found for the device or the user, invalid_state when nobody holds the device.
func CompleteSetUp(app core.App, deviceID string, s SetUp, by audit.Actor, now time.Time) (device *collections.Device, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if device, err = findHeld(tx, deviceID); err != nil {
			return err
		}
		educator, err := educatorOf(tx, s, by)
		if err != nil {
			return err
		}
		at := s.CompletedAt
		if at.IsZero() {
			at = now
		}
		assignment, err := collections.CurrentAssignment(tx, deviceID)
		if err != nil && !collections.Missing(err) {
			return err
		}
		records := []core.Model{device}
		device.Set(collections.DeviceSetupNotes, s.Notes.Reveal())
		columns := map[string]string{collections.DeviceSetupAt: collections.Instant(at), collections.DeviceSetupBy: educator}
		for column, value := range columns {
			device.Set(column, value)
			if assignment != nil {
				assignment.Set(column, value)
			}
		}
		if assignment != nil {
			records = append(records, assignment)
		}
		for _, record := range records {
			if err := save(tx, record); err != nil {
				return err
			}
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.DeviceSetUp, Actor: by, ResourceType: audit.ResourceDevice, ResourceID: deviceID, PatientID: device.PatientID(),
			Changes: audit.Changes{"setup_completed_at": {New: columns["setup_completed_at"]}, "setup_completed_by": {New: educator}},
		}, now)
	})
	return device, err
}

// educatorOf is the e-mail address of who educated the patient: a member of staff.
func educatorOf(tx core.App, s SetUp, by audit.Actor) (string, error) {
	if s.EducatedBy == 0 || strconv.FormatInt(s.EducatedBy, 10) == by.ID {
		return authorOf(by), nil
	}
	user, err := collections.FindUser(tx, collections.NumberID(s.EducatedBy))
	if collections.Missing(err) || (err == nil && user.Role() == string(access.Patient)) {
		return "", fault.Missing()
	}
	if err != nil {
		return "", err
	}
	return user.Email(), nil
}
