package messaging

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// MaxPortalText bounds a message in the portal, in characters.
const MaxPortalText = 4000

// putInPortal stores a message of staff in the thread of the patient's portal account, and notifies the account. Nothing of its content leaves the
// service, so it needs no consent and may have private content. Source: docs/decisions/messages.md, "Portal".
func putInPortal(app core.App, patientID string, s StaffMessage, by audit.Actor, now time.Time) (m *collections.Message, err error) {
	text := strings.TrimSpace(s.Text.Reveal())
	switch {
	case s.Template != FreeText:
		return nil, fault.Field("template", "A message in the portal is a free_text.")
	case text == "":
		return nil, fault.Field("text", "This field is required.")
	case len([]rune(text)) > MaxPortalText:
		return nil, fault.Field("text", fmt.Sprintf("Must have at most %d characters.", MaxPortalText))
	}
	err = app.RunInTransaction(func(tx core.App) error {
		p, err := collections.FindPatient(tx, patientID)
		if err != nil {
			return fault.OrMissing(err)
		}
		if !p.Active() || p.Deleted() {
			return fault.State("invalid_state", suppressionTexts[ReasonArchived])
		}
		accounts, err := collections.ActiveUsers(tx, []string{string(authz.Patient)}, collections.PortalOf, p.Id)
		if err != nil {
			return err
		}
		if len(accounts) == 0 {
			return fault.State("invalid_state", "The patient has no active portal account.")
		}
		m, _, err = collections.AddMessage(tx, collections.MessageDraft{
			PatientID: p.Id, Direction: collections.MessageOut, Channel: collections.ChannelPortal, State: collections.MessageDelivered, Template: string(FreeText),
			Text: phi.Text(text), Author: by.Email, DueAt: now,
		}, now)
		if err != nil {
			return err
		}
		if err := notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.MessageForPatient, Severity: "info", PatientID: p.Id, Key: "message " + m.Id, Body: "Your care team wrote to you.",
		}, now); err != nil {
			return err
		}
		return record(tx, audit.MessageCreate, m, by, m.State(), "", now)
	})
	return m, err
}
