package notifications_test

import (
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// No title that a push may have contains a number or anything that the sanitizer would remove; each is short enough for a lock screen.
func TestPushTitlesContainNoPHI(t *testing.T) {
	if len(notifications.PushTitles) < 50 {
		t.Fatalf("%d titles", len(notifications.PushTitles))
	}
	for _, title := range notifications.PushTitles {
		if phi.Sanitize(title, "removed") != title || strings.ContainsAny(title, "0123456789") || len(title) > 60 {
			t.Errorf("%q", title)
		}
	}
}

// A patient gets pushes in the patient's language.
func TestPushInThePatientsLanguage(t *testing.T) {
	for preferred, want := range map[string][2]string{
		"es-US": {"Recordatorio: mensaje de su equipo médico", "Tiene un mensaje de su equipo médico."},
		"fr":    {"Reminder: message from your care team", "You have a message from your care team."},
	} {
		w := newPractice(t)
		if _, err := w.app.DB().Update(collections.Patients, dbx.Params{"preferred_language": preferred}, dbx.HashExp{"id": w.patient}).Execute(); err != nil {
			t.Fatal(err)
		}
		phone := w.device(vigiltest.User(t, w.app, authz.Patient, vigiltest.PortalOf(w.patient)), "/phone")
		w.announce(notifications.Announcement{Kind: notifications.MessageForPatient, Severity: "info", PatientID: w.patient, Key: "message 1", Body: "Your care team wrote to you."})
		w.send()
		got := w.service.got("/phone")
		if len(got) != 1 {
			t.Fatalf("%s: %d pushes", preferred, len(got))
		}
		message, err := phone.open(got[0].body)
		if err != nil || message["title"] != want[0] || message["body"] != want[1] {
			t.Errorf("%s: %v, %v", preferred, message, err)
		}
	}
}
