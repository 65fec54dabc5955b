package notifications_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// personalOnly are kinds for one user only.
var personalOnly = map[notifications.Kind]bool{
	notifications.ReviewsPending: true, notifications.BillingTasksPending: true, notifications.DigestReady: true, notifications.MeasureAgain: true,
	notifications.MessageForPatient: true,
}

func (w *practice) pendingAnnouncements() int {
	w.t.Helper()
	open, err := collections.PendingAnnouncements(w.app, nil, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(open)
}

// Every announcement has a recipient: without a care team, clinical manager, assignee or active named user, the administrators are notified. Without
// an administrator it waits, and the log reports so once.
func TestEveryAnnouncementHasARecipient(t *testing.T) {
	for _, kind := range append(notifications.Kinds(), "of a later version") {
		t.Run(string(kind), func(t *testing.T) {
			w := newPractice(t)
			var log bytes.Buffer
			w.Log = slog.New(slog.NewTextHandler(&log, nil))
			gone := w.member(authz.Nurse, vigiltest.Inactive())
			w.member(authz.DataMonitor) // on the team, but not notified of patients
			vigiltest.User(t, w.app, authz.Admin, vigiltest.Inactive())
			hasAudience := personalOnly[kind]
			for _, m := range []notifications.Kind{
				notifications.ClaimDenied, notifications.RefundDue, notifications.EvidenceChanged, notifications.BillingRunSkipped,
				notifications.AttestationNeeded, notifications.DeliveryDeadLettered, notifications.EMROutage,
			} {
				hasAudience = hasAudience || kind == m // the data monitor is the audience
			}
			w.announce(notifications.Announcement{
				Kind: kind, Severity: "warning", PatientID: w.patient, EscalationID: "000000000000009", UserID: gone.Id, Body: "Quendolin Mummelsee", Key: "one",
			})
			w.send()
			w.send()
			if got := w.pendingAnnouncements(); (got == 1) == hasAudience {
				t.Fatalf("%d wait for a recipient", got)
			}
			if logged := strings.Count(log.String(), "level=ERROR"); logged != 1-w.closedAnnouncements() || strings.Contains(log.String(), "Mummelsee") {
				t.Errorf("logged %d times: %s", logged, log.String())
			}
			admin := vigiltest.User(t, w.app, authz.Admin)
			w.send()
			if got := len(w.list(admin)); got != 1-boolean(hasAudience) || w.pendingAnnouncements() != 0 {
				t.Errorf("the administrator has %d, %d wait", got, w.pendingAnnouncements())
			}
			w.announce(notifications.Announcement{Kind: kind, Severity: "critical", PatientID: w.patient, UserID: gone.Id, Body: "Quendolin Mummelsee", Key: "two"})
			w.send()
			switch got := len(w.list(admin)); {
			case personalOnly[kind] && got != 0:
				t.Errorf("a personal notification was sent to other users")
			case !personalOnly[kind] && !hasAudience && got != 2:
				t.Errorf("the administrator has %d", got)
			}
			if len(w.list(gone)) != 0 {
				t.Error("an inactive user was notified")
			}
		})
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *practice) closedAnnouncements() int { return 1 - w.pendingAnnouncements() }

// A follow-up of an inactive owner goes to the care team; mails and notices outside announcements have the same fallbacks.
func TestFallbackRecipients(t *testing.T) {
	w := newPractice(t)
	owner, nurse := w.member(authz.Nurse, vigiltest.Inactive()), w.member(authz.Nurse)
	admin := vigiltest.User(t, w.app, authz.Admin)
	w.announce(notifications.Announcement{Kind: notifications.FollowUpDue, Severity: "info", PatientID: w.patient, UserID: owner.Id, Body: "Call.", Key: "a"})
	w.send()
	if len(w.list(nurse)) != 1 || len(w.list(admin)) != 0 {
		t.Errorf("nurse %d, administrator %d", len(w.list(nurse)), len(w.list(admin)))
	}
	left := vigiltest.User(t, w.app, authz.Provider, vigiltest.Inactive())
	alone := w.enroll("Otto", "Niemandskind", left.Id)
	if err := notifications.NotifyOfEmergencyAccess(w.app, alone, "nurse@example.org", phi.Text("unconscious"), w.now); err != nil {
		t.Fatal(err)
	}
	if len(w.list(admin)) != 1 || len(w.list(left)) != 0 {
		t.Errorf("emergency access: administrator %d, inactive provider %d", len(w.list(admin)), len(w.list(left)))
	}
	if err := notifications.QueueMailForCareTeam(w.app, notifications.BatteryLow, alone, w.now); err != nil {
		t.Fatal(err)
	}
	var mails []string
	if err := w.app.DB().NewQuery("SELECT user FROM mails WHERE template = 'battery_low'").Column(&mails); err != nil || len(mails) != 1 || mails[0] != admin.Id {
		t.Errorf("mails to %v (%v)", mails, err)
	}
}

// Notices to administrators wait for the first administrator.
func TestNoticesWaitForAnAdministrator(t *testing.T) {
	w := newPractice(t)
	if err := notifications.NotifyOfBrokenAudit(w.app, 7, w.now); err != nil {
		t.Fatal(err)
	}
	if err := notifications.NotifyOfEmergencyAccess(w.app, w.patient, "nurse@example.org", phi.Text("unconscious"), w.now); err != nil {
		t.Fatal(err)
	}
	w.send()
	if w.pendingAnnouncements() != 2 {
		t.Fatalf("%d wait", w.pendingAnnouncements())
	}
	admin := vigiltest.User(t, w.app, authz.Admin)
	w.send()
	if got := len(w.list(admin)); got != 2 || w.pendingAnnouncements() != 0 {
		t.Errorf("notified %d, %d wait", got, w.pendingAnnouncements())
	}
}
